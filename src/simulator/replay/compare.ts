import type { Json, RecordedAnswer } from "../../router_profile/report/report.ts";

/** One respect in which the simulator answers otherwise than a router. */
export interface Difference {
  readonly kind:
    | "refusal"
    | "text"
    | "missing key"
    | "extra key"
    | "type"
    | "value"
    | "order"
    | "missing row"
    | "extra row";
  /** Where in the answer, such as `0[slot=pool].size`. */
  readonly where: string;
  readonly router: string;
  readonly simulator: string;
}

const namingKeys = ["slot", "name", "fullname", "file-path"];

/** Compares the answers of a router and of the simulator to the same command; both as they are recorded. */
export function compareAnswers(router: RecordedAnswer, simulator: RecordedAnswer): Difference[] {
  const differences: Difference[] = [];
  const isRefused = ({ frames, text }: RecordedAnswer) =>
    frames.includes(null) ||
    (frames.length === 0 && text.some((line) => /^(?:failure|bad|syntax|expected|no such|input)/.test(line)));
  if (isRefused(router) !== isRefused(simulator)) {
    const word = (answer: RecordedAnswer) =>
      isRefused(answer) ? `refuses: ${answer.text.join(" · ")}` : "does it";
    differences.push({ kind: "refusal", where: "", router: word(router), simulator: word(simulator) });
    return differences;
  }
  const [own, other] = [router, simulator].map(({ text }) => text.map(beginningOf).join(" · ")) as [
    string,
    string,
  ];
  if (own !== other) differences.push({ kind: "text", where: "", router: own, simulator: other });
  const count = Math.max(router.frames.length, simulator.frames.length);
  for (let index = 0; index < count; index++) {
    compareValues(String(index), router.frames[index], simulator.frames[index], differences);
  }
  return differences;
}

/** A refusal without the position that it names. */
function beginningOf(line: string): string {
  return line.replace(/\s*\((?:line|\/)[^)]*\)?$/, "");
}

function compareValues(
  where: string,
  router: Json | undefined,
  simulator: Json | undefined,
  differences: Difference[],
): void {
  const [own, other] = [typeOf(router), typeOf(simulator)];
  if (own !== other) return void differences.push({ kind: "type", where, router: own, simulator: other });
  if (Array.isArray(router) && Array.isArray(simulator)) {
    return compareLists(where, router, simulator, differences);
  }
  if (own === "object") return compareObjects(where, router as Item, simulator as Item, differences);
  if (router !== simulator) {
    differences.push({
      kind: "value",
      where,
      router: JSON.stringify(router),
      simulator: JSON.stringify(simulator),
    });
  }
}

type Item = { readonly [key: string]: Json };

function compareObjects(where: string, router: Item, simulator: Item, differences: Difference[]): void {
  for (const key of new Set([...Object.keys(router), ...Object.keys(simulator)])) {
    const at = `${where}.${key}`;
    if (!(key in simulator)) {
      differences.push({ kind: "missing key", where: at, router: show(router[key]), simulator: "" });
    } else if (!(key in router)) {
      differences.push({ kind: "extra key", where: at, router: "", simulator: show(simulator[key]) });
    } else compareValues(at, router[key], simulator[key], differences);
  }
}

/** Rows are found by what names them, so that one that is missing does not make all behind it differ. */
function compareLists(
  where: string,
  router: readonly Json[],
  simulator: readonly Json[],
  differences: Difference[],
): void {
  const [own, other] = [router.map(nameOf), simulator.map(nameOf)];
  const at = (name: string) => `${where}[${name}]`;
  own.forEach((name, index) => {
    const found = other.indexOf(name);
    if (found < 0) {
      differences.push({ kind: "missing row", where: at(name), router: show(router[index]), simulator: "" });
    } else compareValues(at(name), router[index], simulator[found], differences);
  });
  other.forEach((name, index) => {
    if (!own.includes(name)) {
      differences.push({ kind: "extra row", where: at(name), router: "", simulator: show(simulator[index]) });
    }
  });
  const [first, second] = [
    own.filter((name) => other.includes(name)),
    other.filter((name) => own.includes(name)),
  ];
  if (first.join() !== second.join()) {
    differences.push({ kind: "order", where, router: first.join(", "), simulator: second.join(", ") });
  }
}

function nameOf(item: Json, index: number): string {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return String(index);
  const key = namingKeys.find((name) => name in item);
  return key === undefined ? String(index) : `${key}=${show((item as Item)[key])}`;
}

function typeOf(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  return value === null ? "refused" : Array.isArray(value) ? "list" : typeof value;
}

function show(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value)?.slice(0, 120) ?? "";
}
