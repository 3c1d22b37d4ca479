import { publicWords, standIn } from "./allowed.ts";

/** What must not be in a report. */
export interface Known {
  /** Keys and passwords: not even as a part of a word. */
  readonly secrets: readonly string[];
  /** Names and addresses, as whole words. */
  readonly names: readonly string[];
  /** Everything that was hidden while recording, as whole words. */
  readonly hidden: Iterable<string>;
}

const shortestSecret = 4;

/**
 * The known texts that are in the files of a report, in no order; empty where it may be written. A word that this program
 * writes itself tells nothing about anybody.
 *
 * @param texts what is to be written
 * @param ownWords the texts of this program in it
 */
export function findLeaks(
  texts: readonly string[],
  known: Known,
  ownWords: readonly string[] = [],
): string[] {
  const own = new Set([
    ...publicWords,
    ...Object.values(standIn).flatMap((text) => text.split("/")),
    ...ownWords.flatMap((text) => text.toLowerCase().split(/[^a-z0-9-]+/)),
  ]);
  const text = texts.join("\n");
  const isIn = (value: string) => text.includes(value) || text.includes(inJson(value));
  const secrets = known.secrets.filter((secret) => secret.length >= shortestSecret && isIn(secret));
  const names = new Set([...known.names, ...known.hidden]);
  const told = [...names].filter((name) =>
    name.length > 2 && !isPublic(name, own) &&
    (isWord(text, name) || isWord(text, inJson(name)))
  );
  return [...secrets, ...told];
}

/** Whether a name tells nothing: a number, a size, or words that all are this program's or RouterOS's. */
function isPublic(name: string, own: ReadonlySet<string>): boolean {
  return /^\d+(?:\.\d)?(?:[KMGT]iB)?$/.test(name) ||
    name.toLowerCase().split(/[^a-z0-9-]+/).every((word) => word === "" || own.has(word));
}

function inJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

/** Whether a text holds a name that is no part of a longer word. */
function isWord(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const isPart = /^[A-Za-z0-9]$/;
    const [before = "", after = ""] = [text[at - 1], text[at + name.length]];
    const joined = (isPart.test(before) && isPart.test(name[0]!)) ||
      (isPart.test(after) && isPart.test(name.at(-1)!));
    // The name of a probe's object begins with the name of this program.
    if (!joined && !/^[-._]$/.test(before) && !/^[-_]$/.test(after)) return true;
  }
  return false;
}
