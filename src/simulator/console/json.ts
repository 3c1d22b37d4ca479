import { isList, isRecord, type Value } from "../value.ts";

/**
 * Writes a value as `:serialize to=json` does: one line, keys in alphabetical order, `[]` for an empty list.
 *
 * Unless `keepStrings` (the option `json.no-string-conversion`), a text that looks like a number becomes one, with
 * six digits behind the point.
 */
export function toJson(value: Value, keepStrings: boolean): string {
  if (value === null) return '""';
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return textToJson(value, keepStrings);
  if (isRecord(value)) {
    const members = Object.keys(value).sort().map((name) =>
      `${JSON.stringify(name)}:${toJson(value[name] ?? null, keepStrings)}`
    );
    return `{${members.join(",")}}`;
  }
  return isList(value) ? `[${value.map((item) => toJson(item, keepStrings)).join(",")}]` : "";
}

function textToJson(text: string, keepStrings: boolean): string {
  if (!keepStrings && /^-?[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text).toFixed(6);
  return JSON.stringify(text);
}
