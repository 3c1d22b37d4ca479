import { counted } from "../../volume/model/counted.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";
import { defaultPerPage, type Page, type StatusQuery } from "./model.ts";

/** Escaped text for a page. Only {@linkcode markup} makes it. */
export class Html {
  readonly #text: string;

  /** @param text markup in which everything from outside is escaped */
  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** The values for {@linkcode markup}: text and numbers are escaped, undefined is left out. */
export type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** Makes markup in which every value is escaped: names of volumes and nodes, and errors, come from outside. */
export function markup(strings: TemplateStringsArray, ...values: readonly HtmlPart[]): Html {
  return new Html(strings.map((text, at) => text + written(values[at])).join(""));
}

function written(value: HtmlPart): string {
  if (value === undefined) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(written).join("");
  return escaped(String(value));
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

// Characters that reverse the direction of text, or are invisible, are replaced too.
const special = /[&<>"']|(?![\t\n\r])[\p{Cc}\p{Cf}]/gu;

function escaped(text: string): string {
  return text.replace(special, (character) => entities[character] ?? "\ufffd");
}

/** A duration for people: `340 ms`, `1.2 s`, `3 min`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms < 9.95) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`;
  return longDuration(ms);
}

/** A long duration for people, in one unit: `3 min`, `5 h`, `12 d`. */
export function longDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A time as `2026-11-22 09:40:12 UTC`; a dash for one outside the calendar. */
export function moment(atMs: number): string {
  const date = new Date(atMs);
  return Number.isNaN(date.getTime()) ? "–" : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Returns how long ago it was, with the exact time as a tooltip. */
export function ago(atMs: number | undefined, nowMs: number, none = "never"): Html {
  if (atMs === undefined) return markup`${none}`;
  return markup`<time title="${moment(atMs)}">${longDuration(nowMs - atMs)} ago</time>`;
}

/** A column of a table. */
export interface Column<T> {
  readonly head: string;
  /** Its form: an identifier, a number, a long text, or a time. */
  readonly form?: "id" | "number" | "message" | "when";
  readonly cell: (row: T) => HtmlPart;
}

/** A table, or a sentence if it would be empty. On a narrow screen each row becomes a list. */
export function table<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  none: string,
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
    <table>
      <thead>
        <tr>${heads}</tr>
      </thead>
      <tbody>\n${body}</tbody>
    </table>
  `;
}

/** A word with a colour for its severity: the colour alone never carries the meaning. */
export function badge(kind: "good" | "bad" | "warn" | "plain", text: string): Html {
  return markup`<span class="badge ${kind}">${text}</span>`;
}

/** The problems of a volume. */
export function problemList(problems: readonly HealthProblem[]): Html {
  return markup`${
    problems.map(({ reason, message }) => markup`<div>${badge("bad", reason)} ${message}</div>`)
  }`;
}

/** A form to search a long list, and links to its other pages. */
export function pager<T>({ matching, total, page, pages }: Page<T>, query: StatusQuery): Html {
  if (total === 0) return markup``;
  const shown = pages > 1 ? `, page ${page} of ${pages}` : "";
  const found = query.text === "" ? counted(total, "volume") : `${matching} of ${counted(total, "volume")}`;
  return markup`<form method="get" action="">
<input type="search" name="q" value="${query.text}" maxlength="128" size="36" aria-label="Text to search for"
  placeholder="volume, node or problem"> <button>Search</button> <span class="quiet">${found}${shown}</span>
${pages > 1 && page > 1 ? link(query, page - 1, "← previous") : undefined}
${pages > 1 && page < pages ? link(query, page + 1, "next →") : undefined}
${query.text === "" ? undefined : markup`<a href="?">show all</a>`}
</form>`;
}

function link({ text, perPage }: StatusQuery, page: number, wording: string): Html {
  const parameters = new URLSearchParams({
    ...text === "" ? {} : { q: text },
    page: String(page),
    ...perPage === defaultPerPage ? {} : { limit: String(perPage) },
  });
  return markup`<a href="?${parameters.toString()}">${wording}</a>`;
}
