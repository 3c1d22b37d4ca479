import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { Semaphore, type Turn } from "./semaphore.ts";

Deno.test("Semaphore.acquire() lets a last caller go when no other waits", async () => {
  const clock = new FakeClock();
  const semaphore = new Semaphore(1);
  const order: string[] = [];
  const enter = async (name: string, turn?: Turn) => {
    await semaphore.acquire(fakeCall(clock).signal, turn);
    order.push(name);
    semaphore.release();
  };
  await semaphore.acquire(fakeCall(clock).signal);
  const all = [enter("a", "last"), enter("b"), enter("c", "last"), enter("d")];
  semaphore.release();
  await Promise.all(all);
  assert.deepEqual(order, ["b", "d", "a", "c"]);
});

Deno.test("Semaphore.run() runs so much work at once, and the rest in order, also after a caller gave up", async () => {
  const clock = new FakeClock();
  const semaphore = new Semaphore(2);
  const order: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const calls = ends.map(() => fakeCall(clock));
  const works = ends.map((end, i) =>
    semaphore.run(calls[i]!.signal, () => {
      order.push(i);
      return end.promise;
    })
  );
  await clock.advance(0);
  assert.deepEqual(order, [0, 1]);
  calls[2]!.cancel();
  await assert.rejects(works[2]!, refusal("cancelled", /client went away/));
  ends[0]!.reject(new Error("failed"));
  await assert.rejects(works[0]!, /failed/);
  await clock.advance(0);
  assert.deepEqual(order, [0, 1, 3]);
  for (const end of ends) end.resolve();
  await Promise.all([works[1], works[3], works[4]]);
  assert.deepEqual(order, [0, 1, 3, 4]);
});
