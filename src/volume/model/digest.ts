import { createHash } from "node:crypto";

/** The first `digits` hex digits (lower case) of the SHA-256 of `text` in UTF-8. */
export function digest(text: string, digits: number): string {
  return createHash("sha256").update(text, "utf8").digest("hex").slice(0, digits);
}
