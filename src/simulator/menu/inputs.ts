import { Refusal } from "../refusal.ts";
import type { Values } from "./menu.ts";

const suffixes: Readonly<Record<string, bigint>> = {
  "": 1n,
  K: 1024n,
  M: 1024n ** 2n,
  G: 1024n ** 3n,
  T: 1024n ** 4n,
};

/**
 * Parses a size in bytes; the suffixes K, M, G and T are binary, with or without `iB`.
 *
 * @throws {Refusal} when it is invalid.
 */
export function readSize(property: string, text: string): bigint {
  const match = /^([0-9]+)([KMGT]?)(?:iB)?$/.exec(text);
  if (match === null) {
    throw /^[0-9]/.test(text) ? Refusal.trailingCharacters(property) : Refusal.noMatch(property);
  }
  return BigInt(match[1]!) * suffixes[match[2]!]!;
}

/** @throws {Refusal} when it is neither yes nor no. */
export function readYesNo(property: string, text: string): boolean {
  if (text === "yes" || text === "true") return true;
  if (text === "no" || text === "false") return false;
  throw Refusal.noMatch(property);
}

/** @throws {Refusal} when it is no TCP port. */
export function readPort(property: string, text: string): number {
  if (!/^[0-9]+$/.test(text)) {
    throw /^[0-9]/.test(text) ? Refusal.trailingCharacters(property) : Refusal.noMatch(property);
  }
  const port = Number(text);
  if (port < 1 || port > 65535) throw Refusal.outOfRange(property, "1..65535");
  return port;
}

/** Formats a time as a router does: `2026-01-31 12:00:00`. */
export function formatTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

/** @throws {Refusal} when a required value is missing or empty. */
export function required(values: Values, name: string): string {
  const value = values.get(name);
  if (value === undefined || value === "") throw Refusal.missingValue(name);
  return value;
}
