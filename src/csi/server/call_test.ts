import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { lockKeys, VolumeLocks } from "./call.ts";

function isBusy(error: unknown): true {
  assert.ok(VolumeError.is(error, "busy"), String(error));
  return true;
}

Deno.test("VolumeLocks.take() refuses a key that is held, names its holder, and takes it after its release", () => {
  const locks = new VolumeLocks();
  const release = locks.take(["a"], "DeleteVolume request=1");
  assert.throws(() => locks.take(["a"], "x"), (error) => {
    assert.match((error as Error).message, /DeleteVolume request=1/);
    return isBusy(error);
  });
  release();
  locks.take(["a"], "x")();
  assert.equal(locks.size, 0);
});

Deno.test("VolumeLocks.tryTake() returns undefined for a key that is held, and takes all keys or none", () => {
  const locks = new VolumeLocks();
  const release = locks.tryTake(["a", "b"], "one");
  assert.equal(locks.tryTake(["c", "b"], "two"), undefined);
  assert.equal(locks.size, 2);
  release?.();
  locks.tryTake(["c", "b"], "two")?.();
  assert.equal(locks.size, 0);
});

Deno.test("VolumeLocks.take() takes all keys or none", () => {
  const locks = new VolumeLocks();
  const release = locks.take(["b"], "one");
  assert.throws(() => locks.take(["a", "b"], "two"), isBusy);
  assert.equal(locks.size, 1);
  locks.take(["a"], "three")();
  release();
});

Deno.test("VolumeLocks.take() takes a repeated key once", () => {
  const locks = new VolumeLocks();
  locks.take(["a", "a"], "one")();
  assert.equal(locks.size, 0);
});

Deno.test("VolumeLocks: releasing twice does not release what another call took meanwhile", () => {
  const locks = new VolumeLocks();
  const release = locks.take(["a"], "one");
  release();
  locks.take(["a"], "two");
  release();
  assert.throws(() => locks.take(["a"], "three"), isBusy);
});

Deno.test("VolumeLocks notifies the holder of a key of each refused call", () => {
  const locks = new VolumeLocks();
  let wanted = 0;
  const release = locks.take(["a", "b"], "one", () => void wanted++);
  assert.throws(() => locks.take(["b"], "two"), isBusy);
  assert.equal(locks.tryTake(["a"], "three"), undefined);
  locks.take(["c"], "four");
  assert.equal(wanted, 2);
  release();
  locks.take(["a"], "five");
  assert.equal(wanted, 2);
});

Deno.test("VolumeLocks: an empty list of keys locks nothing and is never refused", () => {
  const locks = new VolumeLocks();
  locks.take([], "one");
  locks.take([], "two");
  assert.equal(locks.size, 0);
});

Deno.test("lockKeys() turns every form of a key into a list without empty strings", () => {
  const table = [
    [undefined, []],
    ["", []],
    ["a", ["a"]],
    [["a", ""], ["a"]],
    [[], []],
  ] as const;
  for (const [key, expected] of table) assert.deepEqual(lockKeys(key), expected);
});
