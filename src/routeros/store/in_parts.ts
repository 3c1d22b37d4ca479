import { VolumeError } from "../../volume/errors.ts";

/** Parts asked for at the same time; other callers need channels too. */
const parallel = 3;

/** Some of the items of a list. */
export interface Part {
  /** A regular expression of character classes and anchors only, alike in POSIX and here. */
  readonly pattern: string;
  /** What it can be divided into; undefined when it cannot be divided further. */
  readonly smaller: (() => readonly Part[]) | undefined;
}

/**
 * Lists in as many parts as the router's output limit forces.
 *
 * @param what names the items in the error
 * @param ask reads the items of a part; undefined when the answer came cut
 * @throws {VolumeError} unavailable when even a small part comes cut
 */
export async function collectParts<Item>(
  what: string,
  parts: readonly Part[],
  ask: (part: Part) => Promise<readonly Item[] | undefined>,
): Promise<Item[]> {
  const items: Item[] = [];
  const todo = [...parts];
  const work = async () => {
    try {
      for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
        const found = await ask(part);
        // Depth first: where even small parts come cut, that shows after a few commands, not after thousands.
        if (found === undefined) todo.unshift(...divided(what, part));
        else items.push(...found);
      }
    } catch (error) {
      todo.length = 0;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  return items;
}

function divided(what: string, part: Part): readonly Part[] {
  if (part.smaller !== undefined) return part.smaller();
  throw new VolumeError(
    "unavailable",
    `Cannot list the router's ${what} as even a small part of them comes cut: pattern=${part.pattern}`,
  );
}
