import type { Search } from "./find.ts";

/** The results of all schedules together, and how soon each planted bug was found. */
export interface Proof {
  readonly cores: number;
  readonly seconds: number;
  readonly schedules: number;
  readonly events: number;
  readonly answers: Search["answers"];
  readonly planted: readonly PlantedResult[];
}

export interface PlantedResult {
  readonly title: string;
  /** The number of schedules until it was found; undefined when it was not. */
  readonly schedules: number | undefined;
  /** The number of remaining steps of the schedule that found it. */
  readonly steps: number | undefined;
}

/** Adds up the results of several searches. */
export function total(searches: readonly Search[]): Pick<Proof, "schedules" | "events" | "answers"> {
  const answers: Record<string, number> = {};
  for (const search of searches) {
    for (const [answer, count] of Object.entries(search.answers)) {
      answers[answer] = (answers[answer] ?? 0) + count;
    }
  }
  const sum = (count: "schedules" | "events") => searches.reduce((all, one) => all + one[count], 0);
  return { schedules: sum("schedules"), events: sum("events"), answers };
}

/** The result as two Markdown tables: calls with their answers, and planted bugs. */
export function tables({ answers, planted }: Proof): string {
  const verbs = [...new Set(Object.keys(answers).map((answer) => answer.split(" ")[0]!))].toSorted();
  const calls = verbs.map((verb) => {
    const counts = Object.entries(answers).filter(([answer]) => answer.startsWith(`${verb} `));
    const all = counts.reduce((sum, [, count]) => sum + count, 0);
    return [verb, answers[`${verb} OK`] ?? 0, all - (answers[`${verb} OK`] ?? 0)];
  });
  const bugs = planted.map(({ title, schedules, steps }) => [title, schedules ?? "not found", steps ?? "-"]);
  return `${table(["call", "OK", "error"], calls)}\n${
    table(["planted bug", "schedules", "steps left"], bugs)
  }`;
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}

const [labelWidth, barWidth, lineHeight, decades] = [420, 360, 18, 5];

/** How many schedules it took to find each planted bug, as bars on a logarithmic scale from 1 to 100,000. */
export function chart({ planted }: Proof): string {
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
