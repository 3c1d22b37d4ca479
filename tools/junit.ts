// Parses JUnit reports, the one format that `deno test` and csi-sanity both write: these few tags need no npm package.

/** One test of a JUnit report. */
export interface TestCase {
  readonly file: string;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** How long it ran; 0 if the report does not say. */
  readonly seconds: number;
  /** Why it was skipped or failed, if the report says so. */
  readonly message: string;
}

const CASE = /<testcase\s([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const ATTRIBUTE = /([\w-]+)="([^"]*)"/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

/** Parses the tests of a JUnit report of `deno test` or csi-sanity. */
export function parseJunit(xml: string): TestCase[] {
  return [...xml.matchAll(CASE)].map(([, head = "", body = ""]) => {
    const { classname = "", name = "", time = "0" } = attributesOf(head);
    const end = /<(failure|error|skipped)\b([^>]*)>/.exec(body);
    return {
      file: classname,
      name,
      outcome: end === null ? "passed" : end[1] === "skipped" ? "skipped" : "failed",
      seconds: Number(time),
      message: attributesOf(end?.[2] ?? "")["message"] ?? "",
    };
  });
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(ATTRIBUTE)].map(([, key = "", value = ""]) => [key, unescape(value)]),
  );
}

function unescape(text: string): string {
  return text.replace(/&(?:#(x?)([0-9a-fA-F]+)|(\w+));/g, (whole, hex, digits, name) => {
    if (digits !== undefined) return String.fromCodePoint(parseInt(digits, hex === "x" ? 16 : 10));
    return ENTITIES[name] ?? whole;
  });
}
