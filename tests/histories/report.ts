import type { Search } from "./find.ts";

/** How soon a planted bug was found. */
export interface PlantedResult {
  readonly title: string;
  /** How many schedules were run until it was found; undefined when it was not found. */
  readonly schedules: number | undefined;
  /** How many steps the reduced schedule that found it has. */
  readonly steps: number | undefined;
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
  const rows = planted.map(({ title, schedules, steps }) =>
    [title, schedules ?? "not found", steps ?? "-"].map((cell) => String(cell).replaceAll("|", "\\|"))
  );
  return table(["planted bug", "schedules", "steps left"], rows);
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

const [labelWidth, barWidth, lineHeight, decades] = [420, 360, 18, 5];

/** Draws how many schedules it took to find each planted bug, as bars on a logarithmic scale from 1 to 100,000. */
export function bugChart(planted: readonly PlantedResult[]): string {
  const [width, height] = [labelWidth + barWidth + 80, (planted.length + 2) * lineHeight];
  const bars = planted.map(({ title, schedules }, index) => {
    const y = (index + 1) * lineHeight;
    const length = Math.max(2, Math.log10(schedules ?? 10 ** decades) * barWidth / decades);
    const colour = schedules === undefined ? "#c62828" : "#1565c0";
    return `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${title}</text>` +
      `<rect x="${labelWidth}" y="${y + 2}" width="${length.toFixed(1)}" height="12" fill="${colour}"/>` +
      `<text x="${(labelWidth + length + 6).toFixed(1)}" y="${y + 12}">${schedules ?? "not found"}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    "<title>Schedules until each planted bug is found, logarithmic</title>",
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...bars,
    "</svg>\n",
  ].join("\n");
}
