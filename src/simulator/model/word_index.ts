/** Finds the texts that a regular expression can match, by the words in it. A word is a run of letters and digits. */
export class WordIndex<Key> {
  readonly #keys = new Map<string, Set<Key>>();

  add(key: Key, text: string): void {
    for (const word of wordsOf(text)) addTo(this.#keys, word, key);
  }

  /** @param text the one with which `key` was added */
  remove(key: Key, text: string): void {
    for (const word of wordsOf(text)) removeFrom(this.#keys, word, key);
  }

  /** The keys of all texts that a pattern can match, and maybe of others; undefined when its words are not enough. */
  among(pattern: string): Iterable<Key> | undefined {
    let fewest: ReadonlySet<Key> | undefined;
    for (const word of wholeWords(pattern)) {
      const keys = this.#keys.get(word);
      if (keys === undefined) return [];
      if (fewest === undefined || keys.size < fewest.size) fewest = keys;
    }
    return fewest;
  }
}

/** Adds a key to those that are indexed under a word. */
export function addTo<Key>(index: Map<string, Set<Key>>, word: string, key: Key): void {
  index.set(word, (index.get(word) ?? new Set()).add(key));
}

/** Removes a key from those that are indexed under a word. */
export function removeFrom<Key>(index: Map<string, Set<Key>>, word: string, key: Key): void {
  const keys = index.get(word);
  keys?.delete(key);
  if (keys?.size === 0) index.delete(word);
}

function wordsOf(text: string): Set<string> {
  return new Set(text.match(/[A-Za-z0-9]+/g));
}

/** The tokens of a pattern: an end or a character between words; a part of a word; any character. */
const token = /(?<end>\(\^\|\/\)|\[\.\]|[/_-]|\^|\$)|(?<word>[A-Za-z0-9]+)|(?<any>\.)/y;

/**
 * The words that every match of a regular expression contains as whole words. Returns none if the pattern contains
 * anything but plain characters, `.`, `[.]`, anchors and `(^|/)`.
 */
export function wholeWords(pattern: string): readonly string[] {
  const words: string[] = [];
  let begins = false;
  let last: string | undefined;
  token.lastIndex = 0;
  while (token.lastIndex < pattern.length) {
    const groups = token.exec(pattern)?.groups;
    if (groups === undefined) return [];
    const isEnd = groups["end"] !== undefined;
    if (isEnd && last !== undefined) words.push(last);
    last = begins ? groups["word"] : undefined;
    begins = isEnd;
  }
  return words;
}
