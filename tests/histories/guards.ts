import { dirname, join } from "node:path";
import type { PlantedBug } from "./planted_bugs.ts";

/** What a guard looks like in one line, and what is left of it when it is forgotten. */
const forgotten: readonly (readonly [guard: RegExp, left: (match: RegExpExecArray) => string | undefined])[] =
  [
    // A call that only throws.
    [/^( +)(?:await )?assert\w+\(.*\);$/, () => ""],
    // A condition that refuses, or goes another way.
    [
      /^( +(?:\} else )?)if \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)( throw | return|(?: \{)$)(.*)$/,
      leftOfIf,
    ],
    // The last of several conditions.
    [/^( +.*[^&|]) && ([^&|?:;]+);$/, ([, before, last]) => isBalanced(last!) ? `${before};` : undefined],
  ];

/** Telling an absent value from a present one is no guard: without it the types would not fit. */
const presence = /^!?\w+(?:\??\.\w+)* (?:===|!==) undefined$/;

function leftOfIf([, indent, condition, kind, rest]: RegExpExecArray): string | undefined {
  return presence.test(condition!) ? undefined : `${indent}if (false)${kind}${rest}`;
}

function isBalanced(text: string): boolean {
  const count = (mark: string) => text.split(mark).length;
  return count("(") === count(")") && count("{") === count("}") && count("[") === count("]");
}

/** Returns every mistake of forgetting one guard of a source file. @param file its name, as in {@linkcode PlantedBug} */
export function mistakesIn(source: string, file: string): PlantedBug[] {
  const lines = source.split("\n");
  return lines.flatMap((line, index) => {
    for (const [guard, left] of forgotten) {
      const match = guard.exec(line);
      if (match === null) continue;
      const to = left(match);
      if (to !== undefined) return [planted(lines, index, to, file)];
    }
    return [];
  });
}

/** Takes as many lines above as it needs for a text that occurs once. */
function planted(lines: readonly string[], index: number, to: string, file: string): PlantedBug {
  const source = lines.join("\n");
  let first = index;
  const text = () => lines.slice(first, index + 1).join("\n");
  while (first > 0 && source.split(text()).length !== 2) first--;
  const title = `${file}: ${lines[index]!.trim()}`;
  return { title, file, from: text(), to: [...lines.slice(first, index), to].join("\n") };
}

/** Returns the files that some files import, themselves included, by their names relative to the root. */
export async function importedBy(root: string, files: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  const queue = [...files];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    const source = await Deno.readTextFile(join(root, file));
    for (const [, name] of source.matchAll(/^(?:import|export)(?! type\b)[^;]*? from "(\.[^"]+)";$/gm)) {
      queue.push(join(dirname(file), name!));
    }
  }
  return [...found].toSorted();
}
