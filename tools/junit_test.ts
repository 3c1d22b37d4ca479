import assert from "node:assert/strict";
import { parseJunit } from "./junit.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="4" failures="1">
  <testsuite name="./a_test.ts" tests="4" disabled="1" failures="1">
    <testcase name="says &quot;a&quot; &lt; b &amp; c" classname="./a_test.ts" time="1.250">
    </testcase>
    <testcase name="is left out" classname="./a_test.ts"><skipped message="not &#39;here&#39;"></skipped></testcase>
    <testcase name="breaks" classname="./a_test.ts"><failure message="Uncaught Error: boom">at line 3</failure></testcase>
    <testcase name="is short" classname="./a_test.ts"/>
  </testsuite>
</testsuites>`;

Deno.test("parseJunit() reads outcomes, names, times and messages", () => {
  assert.deepEqual(parseJunit(REPORT), [
    { file: "./a_test.ts", name: 'says "a" < b & c', outcome: "passed", seconds: 1.25, message: "" },
    { file: "./a_test.ts", name: "is left out", outcome: "skipped", seconds: 0, message: "not 'here'" },
    { file: "./a_test.ts", name: "breaks", outcome: "failed", seconds: 0, message: "Uncaught Error: boom" },
    { file: "./a_test.ts", name: "is short", outcome: "passed", seconds: 0, message: "" },
  ]);
});

Deno.test("parseJunit() finds nothing in a report without tests", () => {
  assert.deepEqual(parseJunit(`<testsuites tests="0"></testsuites>`), []);
});
