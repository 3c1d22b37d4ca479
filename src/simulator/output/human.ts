import type { Notation } from "../menu/menu.ts";
import { isList, toText, type Value } from "../value.ts";

const units = ["KiB", "MiB", "GiB", "TiB"] as const;

/** Groups digits by blanks: `53 687 091 200`. */
export function groupDigits(number: bigint): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, " ");
}

/**
 * Rounds a size to one digit. A unit is kept as long as the number is at most 1024 of it: 1 GiB is `1024.0MiB`,
 * 1 TiB is `1024.0GiB`, and nothing but the plain bytes is exact.
 */
export function roundSize(bytes: bigint): string {
  let size = Number(bytes);
  let unit = "";
  for (const next of units) {
    if (size <= 1024) break;
    size /= 1024;
    unit = next;
  }
  return unit === "" ? String(bytes) : `${size.toFixed(1)}${unit}`;
}

/** Writes the time of a duration with letters, leaving out what is zero: `1d03:00:05` becomes `1d3h5s`. */
function shortenDuration(duration: string): string {
  return duration.replace(/(\d\d):(\d\d):(\d\d)$/, (_whole, ...parts: string[]) => {
    const shown = ["h", "m", "s"].map((unit, index) => `${Number(parts[index])}${unit}`);
    return shown.filter((part) => !part.startsWith("0")).join("") || "0s";
  });
}

/** Writes a value for people, without the quotes that {@linkcode Notation} may ask for. */
export function toHuman(value: Value, notation: Notation): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (isList(value)) return value.map(toText).join(",");
  if (notation === "duration") return shortenDuration(toText(value));
  if (typeof value !== "bigint") return toText(value);
  if (notation === "grouped") return groupDigits(value);
  if (notation === "rounded") return roundSize(value);
  return notation === "percent" ? `${value}%` : String(value);
}
