import { VolumeError } from "../../volume/errors.ts";

/** A JSON value with exact integers: a whole number is a bigint of any size. */
export type JsonValue = string | bigint | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** `JSON.parse` with the source text of primitive values (ECMAScript "JSON.parse source text access"). */
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
) => JsonValue;

/** Matches numbers that may be too long to be exact, or not whole. A match within a string does no harm. */
const unusualNumber = /(?:^|[[:,\s])-?(?:\d{16}|\d+[.eE])/;

/** Converts every number to a bigint, in place; all of them have to be whole and exact. */
function withBigInts(value: JsonValue): JsonValue {
  if (typeof value === "number") return BigInt(value);
  if (typeof value !== "object" || value === null) return value;
  const parts = value as Record<string, JsonValue>;
  for (const key of Object.keys(parts)) {
    const part = parts[key]!;
    if (typeof part === "number" || typeof part === "object") parts[key] = withBigInts(part);
  }
  return value;
}

/**
 * Parses JSON of the router with exact integers.
 *
 * @param what names the subject in the error
 * @throws {VolumeError} unavailable when it is not JSON
 */
export function parseJson(text: string, what: string): JsonValue {
  try {
    // Reading the source text of every value takes ten times as long, which matters for a list of thousands of disks.
    if (!unusualNumber.test(text)) return withBigInts(JSON.parse(text));
    return parseWithSource(text, (_key, value, context) => {
      if (typeof value !== "number") return value;
      return context.source !== undefined && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
    });
  } catch (cause) {
    throw unreadable(what, `it is not JSON: ${JSON.stringify(text.slice(0, 80))}`, cause);
  }
}

/**
 * Parses a list of objects, as `print as-value` prints it.
 *
 * @throws {VolumeError} unavailable when it is anything else
 */
export function parseRows(text: string, what: string): Row[] {
  return [...eachRow(text, what)];
}

/** The minimum number of characters of a list that are parsed at once: a few hundred disks. */
const pieceLength = 1 << 17;

/**
 * Like `parseRows()`, but one row after the other: of a list of thousands only a part is in memory as rows.
 *
 * @throws {VolumeError} unavailable when it is anything else; rows may have come before
 */
export function* eachRow(text: string, what: string): Generator<Row> {
  for (const value of parsePieces(text, what)) {
    if (!Array.isArray(value)) throw unreadable(what, "it is no list");
    for (const item of value as readonly JsonValue[]) yield new Row(item, what);
  }
}

/** How often another end is tried for a piece: a text in it may look like one. */
const maxEnds = 64;

/**
 * Parses a long list as several short ones, and what is short at once.
 *
 * @throws {VolumeError} unavailable when it is long and no list of objects, which would take too much memory
 */
function* parsePieces(text: string, what: string): Generator<JsonValue> {
  let begun = 0;
  while (text.length - begun > 2 * pieceLength) {
    const { value, end } = firstPiece(text, begun) ?? {};
    if (value === undefined || end === undefined) {
      const reason = "it is not JSON, or an item of it is too long";
      throw unreadable(what, text.startsWith("[") ? reason : "it is no list");
    }
    yield value;
    begun = text.indexOf("{", end + 1);
  }
  yield parseJson(begun === 0 ? text : `[${text.slice(begun)}`, what);
}

/** The value of a piece that begins there, and the index of its last character; undefined where none ends soon. */
function firstPiece(text: string, begun: number): { value: JsonValue; end: number } | undefined {
  const between = /\}\s*,\s*\{/g;
  between.lastIndex = begun + pieceLength;
  for (let attempt = 0; attempt < maxEnds; attempt++) {
    const end = between.exec(text)?.index;
    if (end === undefined || end - begun > 2 * pieceLength) return undefined;
    // A piece that ends within a text or an item is no JSON.
    const value = tryParse(`${begun === 0 ? "" : "["}${text.slice(begun, end + 1)}]`);
    if (value !== undefined) return { value, end };
    between.lastIndex = end + 1;
  }
  return undefined;
}

function tryParse(text: string): JsonValue | undefined {
  try {
    return parseJson(text, "");
  } catch {
    return undefined;
  }
}

/**
 * Parses one object, also in a list of one.
 *
 * @throws {VolumeError} unavailable when it is anything else
 */
export function parseRow(text: string, what: string): Row {
  const value = parseJson(text, what);
  if (!Array.isArray(value)) return new Row(value, what);
  if (value.length !== 1) throw unreadable(what, `it lists ${value.length} items instead of one`);
  return new Row(value[0], what);
}

/** What a router prints for what is not set. */
const unset: readonly JsonValue[] = ["", "no", "none", "false", "0", false, 0n, null];

/**
 * One item that the router printed. Unused keys are ignored. A requested key that cannot be read is an error that names
 * it, never a guess.
 */
export class Row {
  readonly #fields: JsonObject;
  readonly #what: string;

  /**
   * @throws {VolumeError} unavailable when `value` is no object
   */
  constructor(value: JsonValue | undefined, what: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw unreadable(what, "an item of it is no object");
    }
    this.#fields = value as JsonObject;
    this.#what = what;
  }

  /** Whether the router printed this key at all. */
  has(key: string): boolean {
    return Object.hasOwn(this.#fields, key);
  }

  /**
   * A string.
   *
   * @throws {VolumeError} unavailable when it is missing (and there is no fallback), or no string
   */
  text(key: string, fallback?: string): string {
    const value = this.#get(key, fallback);
    if (typeof value === "string") return value;
    throw this.#wrong(key, value);
  }

  /**
   * The parts of a list, which is an array or a string with commas; a missing key is an empty list.
   *
   * @throws {VolumeError} unavailable when it is anything else
   */
  texts(key: string): readonly string[] {
    const value = this.#find(key) ?? "";
    const parts = typeof value === "string" ? value.split(",") : value;
    if (!Array.isArray(parts)) throw this.#wrong(key, value);
    return parts.flatMap((part) => {
      if (typeof part !== "string") throw this.#wrong(key, value);
      return part.trim() === "" ? [] : [part.trim()];
    });
  }

  /**
   * A boolean: true, false, "yes", "no", "true" or "false".
   *
   * @throws {VolumeError} unavailable when it is missing (and there is no fallback), or anything else
   */
  flag(key: string, fallback?: boolean): boolean {
    const value = this.#get(key, fallback);
    const flag = flagOf(value);
    if (flag === undefined) throw this.#wrong(key, value);
    return flag;
  }

  /** Whether the key has any value except "no" and "none", of any type. */
  isSet(key: string): boolean {
    const value = this.#find(key);
    if (value === undefined) return false;
    return !unset.includes(value) && !(Array.isArray(value) && value.length === 0);
  }

  /**
   * A whole number that is not negative, as a number or in digits. A rounded size such as `50.0GiB` is no such number.
   *
   * @throws {VolumeError} unavailable when it is missing (and there is no fallback), or anything else
   */
  integer(key: string, fallback?: bigint): bigint {
    const value = this.#get(key, fallback);
    if (typeof value === "bigint" && value >= 0n) return value;
    if (typeof value === "string" && /^\d+$/.test(value)) return BigInt(value);
    throw this.#wrong(key, value);
  }

  /** Whether {@linkcode Row.integer} can read this key. */
  hasInteger(key: string): boolean {
    const value = this.#find(key);
    return (typeof value === "bigint" && value >= 0n) || (typeof value === "string" && /^\d+$/.test(value));
  }

  /** A string; undefined when it is missing, or anything else. */
  find(key: string): string | undefined {
    const value = this.#find(key);
    return typeof value === "string" ? value : undefined;
  }

  /** A boolean as {@linkcode flag} takes it; undefined when it is missing, or anything else. */
  findFlag(key: string): boolean | undefined {
    return flagOf(this.#find(key));
  }

  /** What `read` makes of a value of any type; undefined when it is missing. */
  findAny<T>(key: string, read: (value: JsonValue) => T | undefined): T | undefined {
    const value = this.#find(key);
    return value === undefined ? undefined : read(value);
  }

  /**
   * The largest number of bytes that a printed size may stand for: `50.0GiB` is at most 50.1 GiB. Undefined when it is
   * missing, or no size.
   */
  maxBytes(key: string): bigint | undefined {
    if (this.hasInteger(key)) return this.integer(key);
    const [, whole, part = "", prefix] = /^(\d+)(?:\.(\d+))? ?([KMGTPE]?)i?B?$/i.exec(this.find(key) ?? "") ??
      [];
    if (whole === undefined || prefix === undefined) return undefined;
    const unit = 1n << (10n * BigInt(" KMGTPE".indexOf(prefix.toUpperCase() || " ")));
    const parts = 10n ** BigInt(part.length);
    return ((BigInt(whole + part) + 1n) * unit + parts - 1n) / parts;
  }

  #find(key: string): JsonValue | undefined {
    return this.has(key) ? this.#fields[key] : undefined;
  }

  #get(key: string, fallback: JsonValue | undefined): JsonValue {
    const value = this.#find(key) ?? fallback;
    if (value !== undefined) return value;
    throw unreadable(this.#what, `the key ${key} is missing${this.#name()}`);
  }

  #wrong(key: string, value: JsonValue): VolumeError {
    const shown = JSON.stringify(value, (_key, part) => typeof part === "bigint" ? part.toString() : part);
    return unreadable(
      this.#what,
      `the key ${key} has an unexpected value${this.#name()}: ${shown.slice(0, 64)}`,
    );
  }

  #name(): string {
    const name = this.#find("slot") ?? this.#find("name");
    return typeof name === "string" ? ` (of ${JSON.stringify(name.slice(0, 64))})` : "";
  }
}

function flagOf(value: JsonValue | undefined): boolean | undefined {
  if (value === true || value === "yes" || value === "true") return true;
  return value === false || value === "no" || value === "false" ? false : undefined;
}

/** The error for an answer that arrived completely and still cannot be read. */
export function unreadable(what: string, reason: string, cause?: unknown): VolumeError {
  return new VolumeError("unavailable", `Cannot read the router's ${what} because ${reason}`, { cause });
}
