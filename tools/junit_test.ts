import assert from "node:assert/strict";
import { parseJunit } from "./junit.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="4" failures="1">
  <testsuite name="./a_test.ts" tests="4" disabled="1" failures="1">
    <testcase name="says &quot;a&quot; &lt; b &amp; c" classname="./a_test.ts" time="0.000">
    </testcase>
    <testcase name="is left out" classname="./a_test.ts"><skipped message="not &#39;here&#39;"></skipped></testcase>
    <testcase name="breaks" classname="./a_test.ts"><failure message="Uncaught Error: boom">at line 3</failure></testcase>
    <testcase name="is short" classname="./a_test.ts"/>
  </testsuite>
</testsuites>`;

Deno.test("parseJunit() tells passed, skipped and failed tests apart, with names and messages", () => {
  assert.deepEqual(parseJunit(REPORT), [
    { file: "./a_test.ts", name: 'says "a" < b & c', outcome: "passed", message: "" },
    { file: "./a_test.ts", name: "is left out", outcome: "skipped", message: "not 'here'" },
    { file: "./a_test.ts", name: "breaks", outcome: "failed", message: "Uncaught Error: boom" },
    { file: "./a_test.ts", name: "is short", outcome: "passed", message: "" },
  ]);
});

Deno.test("parseJunit() finds nothing in a report without tests", () => {
  assert.deepEqual(parseJunit(`<testsuites tests="0"></testsuites>`), []);
});
