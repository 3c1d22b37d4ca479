import assert from "node:assert/strict";
import { readReport } from "./suite.ts";

const REPORT = `<testsuites tests="4" failures="1">
  <testsuite name="CSI Driver Test Suite" tests="4">
    <testcase name="[BeforeSuite]" classname="CSI Driver Test Suite" status="passed" time="0.01"></testcase>
    <testcase name="[It] Node Service should work" classname="CSI Driver Test Suite" status="passed" time="0.2">
      <system-err>&gt; Enter [It]</system-err>
    </testcase>
    <testcase name="[It] ListSnapshots should list" classname="CSI Driver Test Suite" status="skipped" time="0">
      <skipped message="skipped - ListSnapshots not supported"></skipped>
    </testcase>
    <testcase name="[It] DeleteVolume should fail" classname="CSI Driver Test Suite" status="failed" time="1">
      <failure message="Expected" type="failed">no</failure>
    </testcase>
  </testsuite>
</testsuites>`;

Deno.test("readReport() gives every test with its outcome and reason, without the suite's own set-up", () => {
  assert.deepEqual(readReport(REPORT), [
    { name: "Node Service should work", outcome: "passed", reason: "" },
    { name: "ListSnapshots should list", outcome: "skipped", reason: "ListSnapshots not supported" },
    { name: "DeleteVolume should fail", outcome: "failed", reason: "Expected" },
  ]);
});

Deno.test("readReport() keeps a failed set-up, because no other test has run then", () => {
  const report = REPORT.replace(
    `status="passed" time="0.01">`,
    `status="failed"><failure message="no driver"/>`,
  );
  assert.deepEqual(readReport(report)[0], { name: "[BeforeSuite]", outcome: "failed", reason: "no driver" });
});
