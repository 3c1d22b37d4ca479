import { Refusal } from "../refusal.ts";

/**
 * Converts a path to the form of `/file`: without slash at either end.
 *
 * @throws {Refusal} for an empty path, one with `..`, and one with control characters.
 */
export function normalisePath(path: string): string {
  const segments = path.replace(/^\/+|\/+$/g, "").split("/");
  const sound = segments.every((segment) => segment !== "" && segment !== "." && segment !== "..");
  // deno-lint-ignore no-control-regex
  if (!sound || /[\x00-\x1f\x7f]/.test(path)) throw Refusal.badPath(path);
  return segments.join("/");
}

/** The parent directory of a path; "" for the root. */
export function parentOf(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}
