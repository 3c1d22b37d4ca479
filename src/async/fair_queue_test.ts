import assert from "node:assert/strict";
import { FairQueue } from "./fair_queue.ts";

function drain(queue: FairQueue<string>): string[] {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items;
}

Deno.test("FairQueue serves keys in turn and keeps the order within a key", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push(item[0]!, item);
  assert.equal(queue.size, 6);
  assert.deepEqual(drain(queue), ["a1", "b1", "c1", "a2", "c2", "a3"]);
  assert.equal(queue.size, 0);
});

Deno.test("FairQueue.shift() skips a key whose next item may not go yet, and keeps its order", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "b1", "c1"]) queue.push(item[0]!, item);
  assert.equal(queue.shift((item) => item !== "a1"), "b1");
  assert.equal(queue.shift(() => false), undefined);
  assert.equal(queue.size, 3);
  assert.deepEqual(drain(queue), ["a1", "c1", "a2"]);
});

Deno.test("FairQueue.putBack() makes an item the next one", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "b1"]) queue.push(item[0]!, item);
  const first = queue.shift()!;
  queue.putBack("a", first);
  assert.equal(queue.size, 3);
  assert.deepEqual(drain(queue), ["a1", "b1", "a2"]);
});

Deno.test("FairQueue.remove() removes exactly that item", () => {
  const queue = new FairQueue<string>();
  for (const item of ["a1", "a2", "b1"]) queue.push(item[0]!, item);
  assert.equal(queue.remove("a", "a1"), true);
  assert.equal(queue.remove("a", "a1"), false);
  assert.equal(queue.remove("z", "z1"), false);
  assert.equal(queue.size, 2);
  assert.deepEqual(queue.items().toSorted(), ["a2", "b1"]);
  assert.deepEqual(drain(queue), ["a2", "b1"]);
});
