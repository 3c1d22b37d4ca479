// Parsed by hand, because the TypeScript compiler would be a dependency of 20 MB just to read string literals.

import { join } from "node:path";
import { projectRoot } from "../support/parts.ts";

/** A message of the sources up to its details, with `…` for each variable part. */
export interface MessageStart {
  readonly text: string;
  /** The file that has it. */
  readonly file: string;
}

/** A person gets no message of it, but the words of a router. */
const withoutPage = ["simulator"];

/** Returns every message "Cannot …" of the sources that a person can get. */
export function messagesInSources(): readonly MessageStart[] {
  const folders = [...Deno.readDirSync(join(projectRoot, "src"))].filter(({ name, isDirectory }) =>
    isDirectory && !withoutPage.includes(name)
  );
  return messagesBelow(folders.map(({ name }) => `src/${name}`).toSorted());
}

function messagesBelow(folders: readonly string[]): readonly MessageStart[] {
  return folders.flatMap(sourcesBelow).flatMap((file) =>
    messagesIn(Deno.readTextFileSync(join(projectRoot, file))).map((text) => ({ text, file }))
  );
}

/** Returns the source files in a folder, without tests, by their paths in the project. */
export function sourcesBelow(folder: string): string[] {
  return [...Deno.readDirSync(join(projectRoot, folder))].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return sourcesBelow(path);
    return path.endsWith(".ts") && !/_test(_support)?\.ts$/.test(path) ? [path] : [];
  }).toSorted();
}

/** Returns the starts of the messages in one file's text, without those of a `TypeError`: they are for developers. */
export function messagesIn(source: string): readonly string[] {
  const code = source.replace(/^\s*(\/\/|\*|\/\*).*$/gm, "");
  return [...code.matchAll(/(new TypeError\(\s*)?["`](?=Cannot )/g)].flatMap((
    { 0: whole, 1: developers, index },
  ) => developers === undefined ? [messageStart(literalAt(code, index + whole.length - 1))] : []);
}

/** Returns the start of a message as the page shows it: the text up to its details. */
export function messageStart(message: string): string {
  const cut = message.search(/[:;](\s|$)| - | \(/);
  return (cut < 0 ? message : message.slice(0, cut)).replace(
    /\s*[…\s]+$/,
    (end) => end.includes("…") ? " …" : "",
  ).trim();
}

/** Returns the text of a literal and of literals added to it, with `…` for each expression. */
function literalAt(code: string, start: number): string {
  let text = "";
  for (let at = start; at >= 0;) {
    const quote = code[at]!;
    at++;
    while (at < code.length && code[at] !== quote) {
      if (code[at] === "\\") {
        text += code[at + 1];
        at += 2;
      } else if (quote === "`" && code.startsWith("${", at)) {
        text += "…";
        at = endOfExpression(code, at + 2);
      } else text += code[at++];
    }
    const [whole] = /^\s*\+\s*(?=["`])/.exec(code.slice(at + 1)) ?? [];
    at = whole === undefined ? -1 : at + 1 + whole.length;
  }
  return text;
}

function endOfExpression(code: string, start: number): number {
  let depth = 1;
  let at = start;
  for (; depth > 0 && at < code.length; at++) depth += code[at] === "{" ? 1 : code[at] === "}" ? -1 : 0;
  return at;
}
