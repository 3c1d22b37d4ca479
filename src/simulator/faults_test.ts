import assert from "node:assert/strict";
import { type Fault, Faults } from "./faults.ts";

function fault(more: Partial<Fault>): Fault {
  return { match: "", nth: 1, times: 1, action: "drop-before", value: undefined, ...more };
}

function strikes(faults: Faults, commands: readonly string[]): (string | undefined)[] {
  return commands.map((command) => faults.strike(command)?.action);
}

Deno.test("Faults affects the n-th match, as often as requested, and then no more", () => {
  const faults = new Faults();
  faults.arm(fault({ match: "^/disk", nth: 2, times: 2 }));
  assert.deepEqual(strikes(faults, ["/disk a", "/file", "/disk b", "/disk c", "/disk d"]), [
    undefined,
    undefined,
    "drop-before",
    "drop-before",
    undefined,
  ]);
});

Deno.test("Faults applies one fault to one command; the next fault waits for the next command", () => {
  const faults = new Faults();
  faults.arm(fault({ action: "hang" }));
  faults.arm(fault({ action: "noise" }));
  assert.deepEqual(strikes(faults, ["a", "b", "c"]), ["hang", "noise", undefined]);
});
