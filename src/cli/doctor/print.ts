import type { Finding } from "../../volume/model/finding.ts";

/** The findings as aligned lines, each fix on a line of its own below what it puts right. */
export function formatFindings(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ check }) => check.length), "fix".length);
  return findings.flatMap(({ state, check, found, fix }) => [
    `${state.padEnd(stateWidth)}  ${check.padEnd(width)}  ${oneLine(found)}`,
    ...(fix === undefined ? [] : [`${"".padEnd(stateWidth)}  ${"fix".padEnd(width)}  ${oneLine(fix)}`]),
  ]);
}

/** How it went, in a line. */
export function formatSummary(findings: readonly Finding[]): string {
  const count = (state: Finding["state"]) => findings.filter((finding) => finding.state === state).length;
  const skipped = count("skipped") === 0 ? "" : `, ${count("skipped")} skipped`;
  return `doctor: ${count("ok")} ok, ${count("warning")} warnings, ${count("problem")} problems${skipped}`;
}

const stateWidth = "problem".length;

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
