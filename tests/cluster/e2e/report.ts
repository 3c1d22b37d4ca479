import { type Exclusion, outOfScope, type Scope } from "./exclusions.ts";

/** One specification as Ginkgo's report in JSON has it; of all that it says, what is looked at here. */
export interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeText: string;
  readonly LeafNodeType: string;
  readonly State: string;
  /** In nanoseconds. */
  readonly RunTime: number;
  readonly Failure?: { readonly Message?: string };
}

/** What Ginkgo says of one run. */
interface SuiteReport {
  readonly SuiteSucceeded?: boolean;
  readonly SpecialSuiteFailureReasons?: readonly string[] | null;
  readonly SpecReports: readonly SpecReport[] | null;
}

/** What became of one suite's specifications. */
export interface Outcome {
  /** Names of all specifications there are, those of other suites too. */
  readonly all: readonly string[];
  readonly passed: readonly string[];
  /** What failed, and what is neither passed nor accounted for: each with the reason. */
  readonly failed: readonly string[];
  /** Those that cannot run here, counted by the reason. */
  readonly excluded: ReadonlyMap<string, number>;
  /** Those that are not about this driver or this system, counted by the reason. */
  readonly inapplicable: ReadonlyMap<string, number>;
}

/** How long a text of a failure is shown. */
const shownCharacters = 600;

/**
 * Reads Ginkgo's report of one upstream suite. Nothing is passed over: a specification that was skipped has a reason that is
 * known here, or it counts as failed.
 *
 * @param text the report, as JSON
 * @param isMeant whether a specification, by its full name, belongs to the suite
 * @param scopes for what reasons specifications may skip themselves
 */
export function readReport(
  text: string,
  isMeant: (name: string) => boolean,
  exclusions: readonly Exclusion[],
  scopes: readonly Scope[] = outOfScope,
): Outcome {
  const reports = JSON.parse(text) as readonly SuiteReport[];
  const specs = reports.flatMap(({ SpecReports }) => SpecReports ?? []);
  const passed: string[] = [], failed: string[] = [];
  const excluded = new Map<string, number>(), inapplicable = new Map<string, number>();
  for (const report of specs) {
    const name = fullName(report);
    if (report.LeafNodeType !== "It") {
      if (report.State !== "passed" && report.State !== "skipped") failed.push(`${name}: ${why(report)}`);
    } else if (isMeant(name)) {
      const result = judge(report, name, exclusions, scopes);
      if (result.kind === "passed") passed.push(name);
      else if (result.kind === "failed") failed.push(`${shortName(name)}: ${result.why}`);
      else count(result.kind === "excluded" ? excluded : inapplicable, result.why);
    }
  }
  const reasons = reports.filter((report) => report.SuiteSucceeded === false)
    .map((report) => `the run as a whole: ${(report.SpecialSuiteFailureReasons ?? []).join("; ")}`);
  if (failed.length === 0) failed.push(...reasons);
  return { all: specs.map(fullName), passed, failed, excluded, inapplicable };
}

type Result =
  | { readonly kind: "passed" }
  | { readonly kind: "failed" | "excluded" | "inapplicable"; readonly why: string };

function judge(
  report: SpecReport,
  name: string,
  exclusions: readonly Exclusion[],
  scopes: readonly Scope[],
): Result {
  if (report.State === "passed") return { kind: "passed" };
  if (report.State !== "skipped") return { kind: "failed", why: why(report) };
  const message = report.Failure?.Message ?? "";
  if (message === "") {
    const exclusion = exclusions.find(({ specs }) => specs.test(name));
    if (exclusion !== undefined) return { kind: "excluded", why: exclusion.why };
    return { kind: "failed", why: "was not run, for no reason that is known here" };
  }
  const scope = scopes.find(({ message: known, specs }) =>
    known.test(message) && (specs?.test(name) ?? true)
  );
  if (scope !== undefined) return { kind: "inapplicable", why: scope.why };
  return { kind: "failed", why: `skipped itself, for a reason that is not known here: ${message}` };
}

/** A specification's name as upstream prints it. */
export function fullName({ ContainerHierarchyTexts, LeafNodeText }: SpecReport): string {
  return [...ContainerHierarchyTexts ?? [], LeafNodeText].join(" ");
}

/** The part of a name that tells specifications of one driver apart. */
export function shortName(name: string): string {
  return name.replace(/^.*?\[Testpattern: /, "[");
}

function why({ State, Failure }: SpecReport): string {
  const message = Failure?.Message ?? "";
  return `${State}: ${message.length > shownCharacters ? `${message.slice(0, shownCharacters)}…` : message}`;
}

function count(counts: Map<string, number>, reason: string): void {
  counts.set(reason, (counts.get(reason) ?? 0) + 1);
}

/** What is said of an outcome, as a line and more for what was not run. */
export function describeOutcome({ passed, failed, excluded, inapplicable }: Outcome): string {
  const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0);
  const listed = (counts: ReadonlyMap<string, number>) =>
    [...counts].map(([reason, number]) => `\n    ${number} ${reason}`).join("");
  return `${passed.length} passed, ${failed.length} failed, ${sum(excluded)} cannot run here, ` +
    `${sum(inapplicable)} do not apply${listed(excluded)}${listed(inapplicable)}`;
}
