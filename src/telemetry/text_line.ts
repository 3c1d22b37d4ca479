import type { LogRecord } from "@logtape/logtape";

/**
 * A record as one line for people: time, level, message, and the fields as `name=value`. What would break the line, or be
 * taken for another field, is quoted as JSON does it.
 */
export function textLine({ timestamp, level, message, properties }: LogRecord): string {
  const time = new Date(timestamp).toISOString();
  const word = (level === "warning" ? "warn" : level).toUpperCase().padEnd(5);
  const fields = Object.entries(properties).map(([name, value]) => ` ${name}=${fieldText(value)}`);
  return `${time} ${word} ${oneLine(message.join(""))}${fields.join("")}\n`;
}

function fieldText(value: unknown): string {
  const text = value instanceof Error
    ? value.stack ?? value.message
    : typeof value === "object" && value !== null
    ? JSON.stringify(value, (_, one) => typeof one === "bigint" ? String(one) : one)
    : String(value);
  return /^[^\s"=\p{Cc}]+$/u.test(text) ? text : JSON.stringify(text);
}

/** Nothing that was logged may look like a line of its own, or move the cursor of a terminal. */
function oneLine(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));
}
