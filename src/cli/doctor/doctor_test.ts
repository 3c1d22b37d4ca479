import assert from "node:assert/strict";
import type { Finding } from "../../volume/model/finding.ts";
import { formatFindings, formatSummary } from "./doctor.ts";

const findings: readonly Finding[] = [
  { check: "reach", state: "ok", found: "answers" },
  { check: "host-key", state: "problem", found: "changed:\n  both", fix: "pin it" },
];

Deno.test("formatFindings() aligns the findings, and puts each fix below its finding", () => {
  assert.deepEqual(formatFindings(findings), [
    "ok       reach     answers",
    "problem  host-key  changed: both",
    "         fix       pin it",
  ]);
});

Deno.test("formatSummary() counts", () => {
  assert.equal(formatSummary(findings), "doctor: 1 ok, 0 warnings, 1 problem");
  const skipped: Finding = { check: "identity", state: "skipped", found: "no --node-id" };
  assert.equal(
    formatSummary([...findings, skipped]),
    "doctor: 1 ok, 0 warnings, 1 problem, 1 skipped",
  );
});
