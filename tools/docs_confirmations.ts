// The part of the page of the architecture that follows from the table of what a step confirms.

import { join } from "node:path";
import { confirmations, type Confirmed, type Fact } from "../src/controller/records/confirmations.ts";

const begin = "<!-- begin: make docs -->\n";
const end = "<!-- end -->\n";

/** The page with that part as the code has it now. @param root the project's folder */
export async function architecturePage(root: string): Promise<string> {
  const page = await Deno.readTextFile(join(root, "docs/internals/architecture.md"));
  const [before, after] = [page.split(begin)[0]!, page.split(end)[1]];
  if (after === undefined) {
    throw new Error("the page of the architecture has no place for the table of steps");
  }
  return `${before}${begin}\n${confirmationTable()}\n${end}${after}`;
}

function confirmationTable(): string {
  const width = Math.max(...Object.keys(confirmations).map(({ length }) => length));
  const rows: string[] = [];
  const readFirst: string[] = [];
  for (const [step, facts] of Object.entries(confirmations)) {
    if (facts === "read-first") readFirst.push(step);
    else rows.push(`${step.padEnd(width)}  ${factsThat(facts, "before")}${factsThat(facts, "after")}`);
  }
  return `\`\`\`\n${rows.join("\n")}\n\`\`\`\n\nRead first: ${readFirst.join(", ")}.\n`;
}

function factsThat(facts: Readonly<Record<Fact, Confirmed>>, how: Confirmed): string {
  const names = Object.entries(facts).filter(([, one]) => one === how).map(([fact]) => fact).join(", ");
  return how === "before" || names === "" ? names : `; ${how}: ${names}`;
}
