import assert from "node:assert/strict";
import { describeUnsoundPool, parseArrayState } from "./array_state.ts";

Deno.test("parseArrayState() goes by the first part, and keeps the array's other activity", () => {
  const cases = [
    ["", true, ""],
    ["none", true, ""],
    ["-", true, ""],
    ["clean", true, ""],
    ["clean, sync:repair, resync = 3%", true, "sync:repair, resync = 3%"],
    ["clean;sync:check", true, "sync:check"],
    ["active", true, ""],
    ["degraded", false, ""],
    ["degraded, sync:recover", false, "sync:recover"],
    ["sync:repair, clean", false, "clean"],
    ["unclean", false, ""],
  ] as const;
  for (const [state, sound, activity] of cases) {
    assert.deepEqual(parseArrayState(state), { sound, activity }, state);
  }
});

Deno.test("describeUnsoundPool() names the state of the pool and of the arrays below it", () => {
  const pool = {
    mountPoint: "pool",
    filesystem: "xfs",
    sizeBytes: 1n,
    freeBytes: 1n,
    state: "clean, sync:repair",
    subvolumeLabel: undefined,
  };
  assert.equal(describeUnsoundPool(pool), undefined);
  const unsoundArrays = [{ slot: "m0", state: "degraded" }];
  assert.equal(describeUnsoundPool({ ...pool, unsoundArrays }), "pool=pool array=m0 state=degraded");
  assert.equal(describeUnsoundPool({ ...pool, state: "degraded" }), "pool=pool state=degraded");
});
