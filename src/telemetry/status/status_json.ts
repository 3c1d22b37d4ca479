import type { Status } from "./model.ts";

/** The status as one JSON document: times as in ISO 8601 and named `…At`, what is not known as null, bytes as numbers. */
export function statusJson(status: Status): string {
  return `${JSON.stringify(written(status), null, 2)}\n`;
}

function written(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) =>
      key === "atMs" || key.endsWith("AtMs")
        ? [key.slice(0, -2), typeof field === "number" ? new Date(field).toISOString() : null]
        : [key, written(field)]
    ),
  );
}
