import { type Html, markup } from "./markup.ts";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Bytes for people, of at most three digits: `1.5 GiB`. */
export function bytes(amount: bigint | number): string {
  let value = Number(amount);
  let unit = 0;
  // What would be rounded to 1024 is one of the next unit.
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${Number(value.toFixed(digits))} ${units[unit]}`;
}

/** A duration for people: `340 ms`, `1.2 s`, `3 min`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms < 9.95) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`;
  return longDuration(ms);
}

/** A long duration for people, in one unit: `3 min`, `5 h`, `12 d`. */
export function longDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A moment as `2026-11-22 09:40:12 UTC`; a dash for one that no calendar has. */
export function moment(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? "–" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** How long ago it was, with the moment for whoever points at it. */
export function ago(atMs: number | undefined, nowMs: number, none = "never"): Html {
  if (atMs === undefined) return markup`${none}`;
  return markup`<time title="${moment(atMs)}">${longDuration(nowMs - atMs)} ago</time>`;
}

/** A number and its noun: `1 volume`, `5,000 volumes`. */
export function counted(amount: number, noun: string): string {
  return `${amount.toLocaleString("en-US")} ${noun}${amount === 1 ? "" : "s"}`;
}
