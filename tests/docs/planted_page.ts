import type { PlantedBug } from "../histories/planted_bugs.ts";

/** A bug that breaks a promise, and what has to find it. */
export interface PromiseBug {
  /** The promise, as `docs/internals/promises.md` has it in bold. */
  readonly promise: string;
  readonly bug: PlantedBug;
  /** The file whose tests fail; undefined where random histories find it. */
  readonly test?: string;
}

/** Where the page is, from the root of the project. */
export const plantedPath = "tests/docs/planted.md";

/** A bug that was planted. */
export interface Broken extends PromiseBug {
  /** The line that fails; undefined when nothing does. */
  readonly line: string | undefined;
}

/** The name of a row's test on the page. */
export function testOf({ test }: PromiseBug): string {
  return test ?? "random histories";
}

const head = `# A bug for each promise

Written by \`make proof/promises\`. It breaks each of [the promises](../../docs/internals/promises.md) by a bug in a copy of
the sources, runs a test there, and fails if the test passes. The last column is the line that failed; for
[random histories](../../docs/internals/proof.md) it is the violation that they report.

`;

/** The whole page. */
export function plantedPage(rows: readonly Broken[]): string {
  const lines = rows.map((row) => {
    const cells = [row.promise, row.bug.title, `\`${testOf(row)}\``, code(row.line ?? "not found")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
  });
  return `${head}| promise | planted bug | test | what failed |\n| --- | --- | --- | --- |\n${
    lines.join("")
  }`;
}

/** Text as code, whatever backticks it has. */
function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}
