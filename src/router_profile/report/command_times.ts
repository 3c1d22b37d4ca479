import type { CommandTimes } from "./report.ts";

const changing = ["add", "set", "remove", "copy", "enable", "disable"];

/** What a command does, whatever it does it to: `disk add, disk/btrfs/subvolume add`, or `read`. */
export function kindOf(command: string): string {
  const grammar = command.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
  const verbs = [...grammar.matchAll(/(?<![\w"=)])\/([a-z]+(?:[/ ][a-z-]+)*)/g)].flatMap(([, words = ""]) => {
    const parts = words.split(/[/ ]/);
    const at = parts.findIndex((part) => changing.includes(part));
    return at < 0 ? [] : [`${parts.slice(0, at).join("/")} ${parts[at]}`];
  });
  return verbs.length === 0 ? "read" : [...new Set(verbs)].join(", ");
}

/** The times of commands by their kind, the most frequent first. */
export function summariseTimes(times: ReadonlyMap<string, readonly number[]>): CommandTimes[] {
  return [...times].map(([kind, ms]) => {
    const sorted = ms.toSorted((a, b) => a - b);
    const at = (share: number) =>
      Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
    return { kind, count: ms.length, p50Ms: at(0.5), p95Ms: at(0.95), maxMs: at(1) };
  }).toSorted((a, b) => b.count - a.count || (a.kind < b.kind ? -1 : 1));
}
