import assert from "node:assert/strict";
import { type Fault, Faults } from "./faults.ts";

function fault(more: Partial<Fault>): Fault {
  return { match: "", nth: 1, times: 1, action: "drop-before", value: undefined, ...more };
}

function strikes(faults: Faults, commands: readonly string[]): (string | undefined)[] {
  return commands.map((command) => faults.strike(command)?.action);
}

Deno.test("Faults strikes the n-th match, as often as asked, and then no more", () => {
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

Deno.test("Faults strikes one command with one fault; the next one waits for the next command", () => {
  const faults = new Faults();
  faults.arm(fault({ action: "hang" }));
  faults.arm(fault({ action: "noise" }));
  assert.deepEqual(strikes(faults, ["a", "b", "c"]), ["hang", "noise", undefined]);
});

Deno.test("Faults.clear() takes them all away", () => {
  const faults = new Faults();
  faults.arm(fault({}));
  faults.clear();
  assert.deepEqual([strikes(faults, ["a"]), faults.list()], [[undefined], []]);
});

Deno.test("Faults refuses a channel when the match fits anything, and the exec request when it does not", () => {
  const faults = new Faults();
  faults.arm(fault({ action: "refuse-channel", match: ".*" }));
  assert.deepEqual(strikes(faults, ["a"]), [undefined]);
  assert.deepEqual([faults.refusesChannel(), faults.refusesChannel()], [true, false]);
  faults.arm(fault({ action: "refuse-channel", match: "disk" }));
  assert.equal(faults.refusesChannel(), false);
  assert.deepEqual(strikes(faults, ["/disk"]), ["refuse-channel"]);
});
