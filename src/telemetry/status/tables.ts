import type { HealthProblem } from "../../volume/model/health.ts";
import { type Html, type HtmlPart, markup } from "./markup.ts";
import type { Course } from "./model.ts";
import { duration } from "./format.ts";

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  /** How it is set: an identifier, a number, a long text, or a time. */
  readonly form?: "id" | "number" | "message" | "when";
  readonly cell: (row: T) => HtmlPart;
}

/** A table, or a sentence where it would be empty. On a narrow screen each row of a wide one becomes a list. */
export function table<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  none: string,
  form: "wide" | "numbers" = "wide",
): Html {
  if (rows.length === 0) return markup`<p class="quiet">${none}</p>`;
  const heads = columns.map(({ head, form = "" }) => markup`<th scope="col" class="${form}">${head}</th>`);
  const body = rows.map((row) =>
    markup`<tr>${
      columns.map(({ head, form = "", cell }) =>
        markup`<td class="${form}" data-of="${head}"><span>${cell(row)}</span></td>`
      )
    }</tr>\n`
  );
  return markup`
    <table class="${form}">
      <thead>
        <tr>${heads}</tr>
      </thead>
      <tbody>\n${body}</tbody>
    </table>
  `;
}

/** How good it is, as a colour beside the word: never by the colour alone. */
export function badge(kind: "good" | "bad" | "warn" | "plain", text: string): Html {
  return markup`<span class="badge ${kind}">${text}</span>`;
}

/** What is wrong with a volume, in words. */
export function problemList(problems: readonly HealthProblem[]): Html {
  return markup`${
    problems.map(({ reason, message }) => markup`<div>${badge("bad", reason)} ${message}</div>`)
  }`;
}

/** A table of how things of several kinds went. */
export function courses(all: readonly Course[], what: string, none: string): Html {
  return table<Course>(
    all,
    [
      { head: what, cell: ({ name }) => name },
      { head: "Count", form: "number", cell: ({ count }) => count.toLocaleString("en-US") },
      { head: "Not well", form: "number", cell: ({ failed }) => failed.toLocaleString("en-US") },
      { head: "Median", form: "number", cell: ({ medianMs }) => duration(medianMs) },
      { head: "99 %", form: "number", cell: ({ p99Ms }) => duration(p99Ms) },
      { head: "Slowest", form: "number", cell: ({ slowestMs }) => duration(slowestMs) },
    ],
    none,
    "numbers",
  );
}
