import type { Search } from "./find.ts";

/** How soon a planted bug was found. */
export interface PlantedResult {
  readonly title: string;
  /** How many schedules were run until it was found; undefined when it was not found. */
  readonly schedules: number | undefined;
}

/** Adds up the results of several searches. */
export function total(searches: readonly Search[]): Omit<Search, "found"> {
  const answers: Record<string, number> = {};
  for (const search of searches) {
    for (const [answer, count] of Object.entries(search.answers)) {
      answers[answer] = (answers[answer] ?? 0) + count;
    }
  }
  const sum = (count: "schedules" | "events") => searches.reduce((all, one) => all + one[count], 0);
  return { schedules: sum("schedules"), events: sum("events"), answers };
}

/** Calls with their answers, as a Markdown table. */
export function callTable({ answers }: Pick<Search, "answers">): string {
  const verbs = [...new Set(Object.keys(answers).map((answer) => answer.split(" ")[0]!))].toSorted();
  const calls = verbs.map((verb) => {
    const counts = Object.entries(answers).filter(([answer]) => answer.startsWith(`${verb} `));
    const all = counts.reduce((sum, [, count]) => sum + count, 0);
    return [verb, answers[`${verb} OK`] ?? 0, all - (answers[`${verb} OK`] ?? 0)];
  });
  return table(["call", "OK", "error"], calls);
}

/** Planted bugs as a Markdown table. */
export function bugTable(planted: readonly PlantedResult[]): string {
  const rows = planted.map(({ title, schedules }) =>
    [title, schedules ?? "not found"].map((cell) => String(cell).replaceAll("|", "\\|"))
  );
  return table(["planted bug", "schedules"], rows);
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
