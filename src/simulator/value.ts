/** The value of a console expression. Numbers are whole; an item's id is its text, `*1F`. */
export type Value = null | boolean | bigint | string | readonly Value[] | RecordValue;

/** Named values: one item as `print as-value` returns it. */
export interface RecordValue {
  readonly [name: string]: Value;
}

/** Whether `value` is a record. */
export function isRecord(value: Value): value is RecordValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether `value` is a list. */
export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Formats a value as `:put` and string concatenation do: lists and records are joined by semicolons. */
export function toText(value: Value): string {
  if (value === null) return "";
  if (isList(value)) return value.map(toText).join(";");
  if (isRecord(value)) {
    return Object.entries(value).map(([name, inner]) => `${name}=${toText(inner)}`).join(";");
  }
  return String(value);
}

/** Whether an expression counts as true in a condition. */
export function isTrue(value: Value): boolean {
  if (typeof value === "boolean") return value;
  if (typeof value === "bigint") return value !== 0n;
  if (typeof value === "string") return value !== "" && value !== "false" && value !== "no";
  return value !== null && (isRecord(value) || value.length > 0);
}

/** Compares two values as `=` does: a boolean also equals its word, a number also equals its digits. */
export function isEqual(left: Value, right: Value): boolean {
  if (typeof left === "boolean") return right === left || booleanWord(right) === left;
  if (typeof right === "boolean") return booleanWord(left) === right;
  return toText(left) === toText(right);
}

/** Orders two values for `<` and `>`: as numbers when both are, else as text. */
export function compare(left: Value, right: Value): number {
  const leftNumber = toNumber(left);
  const rightNumber = toNumber(right);
  if (leftNumber !== undefined && rightNumber !== undefined) {
    return leftNumber < rightNumber ? -1 : leftNumber > rightNumber ? 1 : 0;
  }
  const leftText = toText(left);
  const rightText = toText(right);
  return leftText < rightText ? -1 : leftText > rightText ? 1 : 0;
}

function booleanWord(value: Value): boolean | undefined {
  if (value === "yes" || value === "true") return true;
  if (value === "no" || value === "false" || value === "" || value === null) return false;
  return undefined;
}

function toNumber(value: Value): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "string" && /^-?[0-9]+$/.test(value)) return BigInt(value);
  return undefined;
}
