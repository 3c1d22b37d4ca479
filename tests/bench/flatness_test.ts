import assert from "node:assert/strict";
import { losses, minimumOf } from "./flatness.ts";

const committed = { CreateVolume: { commands: 1, bytes: 1, p50: 1.2 } };

Deno.test("losses() allows a third more of each cost than was committed", () => {
  assert.deepEqual(losses(committed, { CreateVolume: { commands: 1.33, bytes: 1.33, p50: 1.59 } }), []);
  assert.deepEqual(losses(committed, { CreateVolume: { commands: 1, bytes: 0.1, p50: 0.1 } }), []);
});

Deno.test("losses() names each cost that has grown by more, and each call that was not measured", () => {
  assert.deepEqual(losses(committed, { CreateVolume: { commands: 2, bytes: 1.34, p50: 1.61 } }), [
    "CreateVolume: commands 2, 1 when it was committed",
    "CreateVolume: bytes 1.34, 1 when it was committed",
    "CreateVolume: p50 1.61, 1.2 when it was committed",
  ]);
  assert.deepEqual(losses(committed, {}), ["CreateVolume: it was not measured"]);
  assert.equal(losses(committed, { CreateVolume: { commands: NaN, bytes: 1, p50: 1 } }).length, 1);
});

Deno.test("minimumOf() takes the least of each cost of each call", () => {
  const slowed = {
    CreateVolume: { commands: 1, bytes: 1.2, p50: 1.9 },
    DeleteVolume: { commands: 2, bytes: 1, p50: 1 },
  };
  const next = {
    CreateVolume: { commands: 1, bytes: 1, p50: 1.1 },
    DeleteVolume: { commands: 2, bytes: 1, p50: 1.8 },
  };
  assert.deepEqual(minimumOf(slowed, next), {
    CreateVolume: { commands: 1, bytes: 1, p50: 1.1 },
    DeleteVolume: { commands: 2, bytes: 1, p50: 1 },
  });
});
