/** Text that may stand in a page as it is. Only {@linkcode markup} makes it. */
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

/** What can be put into {@linkcode markup}: text and numbers are escaped, undefined is left out. */
export type HtmlPart = Html | string | number | undefined | readonly HtmlPart[];

/** Markup, in which every value is escaped: names of volumes and nodes, and errors, come from outside. */
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

// What would turn the direction of the text around, or hide in it, is as good as markup.
const special = /[&<>"']|(?![\t\n\r])[\p{Cc}\p{Cf}]/gu;

function escaped(text: string): string {
  return text.replace(special, (character) => entities[character] ?? "\ufffd");
}
