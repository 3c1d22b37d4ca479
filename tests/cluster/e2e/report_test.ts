import assert from "node:assert/strict";
import { directoryScopes, type Exclusion } from "./exclusions.ts";
import { describeOutcome, type Outcome, readReport, type SpecReport } from "./report.ts";

const exclusions: readonly Exclusion[] = [{ specs: /by SSH/, why: "want SSH" }];

/** A specification of a suite called "volumes" unless other texts are given. */
function spec(text: string, state: string, message = "", more: Partial<SpecReport> = {}): SpecReport {
  return {
    ContainerHierarchyTexts: ["[sig-storage] External Storage", "[Testpattern: Dynamic PV (ext4)] volumes"],
    LeafNodeText: text,
    LeafNodeType: "It",
    State: state,
    RunTime: 1,
    Failure: { Message: message },
    ...more,
  };
}

function read(...specs: readonly SpecReport[]): Outcome {
  return readReport(
    JSON.stringify([{ SpecReports: specs }]),
    (name) => name.includes("] volumes "),
    exclusions,
  );
}

Deno.test("readReport() counts what passed, and what failed with its reason", () => {
  const { passed, failed } = read(
    spec("stores", "passed"),
    spec("loses", "failed", "is gone"),
    spec("waits", "timedout"),
  );
  assert.equal(passed.length, 1);
  assert.deepEqual(failed, [
    "[Dynamic PV (ext4)] volumes loses: failed: is gone",
    "[Dynamic PV (ext4)] volumes waits: timedout: ",
  ]);
});

Deno.test("readReport() takes for excluded only what was not run and is in the list", () => {
  const { excluded, failed } = read(
    spec("stops it by SSH", "skipped"),
    spec("was forgotten", "skipped"),
    spec("fails by SSH", "failed", "no SSH"),
  );
  assert.deepEqual([...excluded], [["want SSH", 1]]);
  assert.deepEqual(failed, [
    "[Dynamic PV (ext4)] volumes was forgotten: was not run, for no reason that is known here",
    "[Dynamic PV (ext4)] volumes fails by SSH: failed: no SSH",
  ]);
});

Deno.test("readReport() takes a specification that skips itself for a failure, unless the reason is known", () => {
  const { inapplicable, failed } = read(
    spec("formats", "skipped", "Driver x doesn't support ext3 -- skipping"),
    spec("formats", "skipped", "Driver x doesn't support ntfs -- skipping"),
    spec("moves", "skipped", "Number of available nodes is less than 2 - skipping"),
  );
  assert.deepEqual([...inapplicable.values()], [1, 1]);
  assert.equal(failed.length, 1);
  assert.match(failed[0] ?? "", /reason that is not known here: Number of available nodes/);
});

Deno.test("readReport() takes for inapplicable to directories what they do not have, and for volumes not", () => {
  const messages = [
    "Driver x doesn't support Block -- skipping",
    'Driver "x" does not provide raw block - skipping',
    "Driver x doesn't support xfs -- skipping",
    'Driver "x" does not support cloning - skipping',
    'Driver "x" does not support volume snapshots - skipping',
    'Driver "x" does not support populating data from snapshot - skipping',
  ];
  const text = JSON.stringify([{ SpecReports: messages.map((message) => spec("is", "skipped", message)) }]);
  const isMeant = () => true;
  assert.equal(readReport(text, isMeant, exclusions).failed.length, messages.length);
  const { failed, inapplicable } = readReport(text, isMeant, exclusions, directoryScopes);
  assert.deepEqual([failed, [...inapplicable.values()]], [[], [2, 1, 3]]);
});

Deno.test("readReport() leaves other suites alone, but for what belongs to all", () => {
  const outcome = read(
    spec("fails", "failed", "elsewhere", { ContainerHierarchyTexts: ["[sig-network] DNS"] }),
    spec("", "failed", "no nodes", {
      ContainerHierarchyTexts: null,
      LeafNodeType: "SynchronizedBeforeSuite",
    }),
  );
  assert.deepEqual(outcome.failed, [": failed: no nodes"]);
  assert.equal(outcome.all.length, 2);
});

Deno.test("readReport() takes a run for failed that says so of itself and of none of its specifications", () => {
  const run = {
    SuiteSucceeded: false,
    SpecialSuiteFailureReasons: ["Suite Timeout"],
    SpecReports: [spec("stores", "passed")],
  };
  const { failed } = readReport(JSON.stringify([run]), () => true, exclusions);
  assert.deepEqual(failed, ["the run as a whole: Suite Timeout"]);
});

Deno.test("readReport() finds nothing in a report of no specifications", () => {
  const { passed, failed } = readReport('[{"SpecReports":null}]', () => true, exclusions);
  assert.deepEqual([passed, failed], [[], []]);
});

Deno.test("describeOutcome() reports numbers first, and each reason with its own number", () => {
  const text = describeOutcome(read(
    spec("stores", "passed"),
    spec("starts by SSH", "skipped"),
    spec("stops by SSH", "skipped"),
    spec("formats", "skipped", "Driver x doesn't support ext3 -- skipping"),
  ));
  assert.equal(
    text,
    "1 passed, 0 failed, 2 cannot run here, 1 do not apply\n    2 want SSH\n" +
      "    1 about ext3, which the driver does not make",
  );
});
