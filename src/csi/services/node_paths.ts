import { VolumeError } from "../../volume/errors.ts";
import { requiredField } from "./requests.ts";

/** Of the operating system, one byte of which ends the path (Linux, `PATH_MAX` and `NAME_MAX`). */
const maxPathBytes = 4095;
const maxNameBytes = 255;

/**
 * A required path: absolute, without `..`, within the system's limits; doubled and trailing slashes are taken out.
 *
 * @throws {VolumeError} invalid when it is missing or anything else
 */
export function requiredPath(name: string, value: string): string {
  const names = requiredField(name, value).split("/").filter((part) => part !== "");
  if (!value.startsWith("/")) throw wrong(name, "it is not absolute");
  if (names.length === 0) throw wrong(name, "it is the root folder");
  if (names.some((part) => part === "." || part === "..")) throw wrong(name, 'it has "." or ".." in it');
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(value)) throw wrong(name, "it has control characters");
  const tooLong = names.some((part) => byteLength(part) > maxNameBytes) || byteLength(value) > maxPathBytes;
  if (tooLong) throw wrong(name, "it is too long");
  return `/${names.join("/")}`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

function wrong(name: string, why: string): VolumeError {
  return new VolumeError("invalid", `Cannot use the path as ${why}: field=${name}`);
}
