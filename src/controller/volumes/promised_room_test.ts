import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { latestMs } from "../records/in_doubt.ts";
import { maxAgeMs, PromisedRoom } from "./promised_room.ts";

const settleMs = 120_000;
const poolBytes = 100n * gibibyte;

/** A pool of 100 GiB, of which a disk has so much. */
async function read(usedGib: bigint, alone = true) {
  const { store } = testController();
  store.pools = store.pools.slice(0, 1).map((pool) => ({ ...pool, sizeBytes: poolBytes }));
  const [pool] = store.pools;
  if (usedGib > 0n) store.put({ ...aDisk(aRecord()), sizeBytes: usedGib * gibibyte });
  const clock = new FakeClock();
  const room = new PromisedRoom(clock, { overcommit: 1, settleMs }, () => alone);
  const learn = () => room.learnFrom(() => store.createView(undefined, testContext()));
  await learn();
  return { room, clock, store, learn, pool: pool! };
}

Deno.test("isAmple() holds while a tenth of the pool would be left", async () => {
  const { room, pool } = await read(80n);
  assert.equal(room.isAmple(pool, 10n * gibibyte), true);
  assert.equal(room.isAmple(pool, 10n * gibibyte + 1n), false);
  assert.equal(room.expects(10n * gibibyte, pool.mountPoint), true);
  assert.equal(room.expects(10n * gibibyte + 1n), false);
});

Deno.test("isAmple() wants as much left as all calls in flight have asked for", async () => {
  const { room, pool } = await read(0n);
  assert.equal(room.isAmple(pool, 50n * gibibyte), true);
  assert.equal(room.isAmple(pool, 50n * gibibyte + 1n), false);
  await room.during(pool.mountPoint, 30n * gibibyte, () => {
    assert.equal(room.isAmple(pool, 20n * gibibyte), true);
    assert.equal(room.isAmple(pool, 20n * gibibyte + 1n), false);
    return Promise.resolve();
  });
  assert.equal(room.isAmple(pool, 35n * gibibyte), true);
  assert.equal(room.isAmple(pool, 35n * gibibyte + 1n), false);
});

Deno.test("isAmple() never holds after 60 s, for a pool that was not read, and where others promise room too", async () => {
  const { room, pool, clock } = await read(0n);
  await clock.advance(maxAgeMs);
  assert.equal(room.isAmple(pool), true);
  await clock.advance(1);
  assert.deepEqual([room.isAmple(pool), room.expects(0n)], [false, false]);
  const fresh = await read(0n);
  assert.equal(fresh.room.isAmple({ ...fresh.pool, mountPoint: "another" }), false);
  assert.equal(fresh.room.expects(0n, "another"), false);
  const shared = await read(0n, false);
  assert.deepEqual([shared.room.isAmple(shared.pool), shared.room.expects(0n)], [false, false]);
});

Deno.test("what nobody has promised in the end does not count", async () => {
  const { room, pool } = await read(0n);
  await room.during(pool.mountPoint, 80n * gibibyte, () => Promise.resolve(false), (made) => made);
  assert.equal(room.promisedWithin(pool), 0n);
  await room.during(pool.mountPoint, 80n * gibibyte, () => Promise.resolve(true), (made) => made);
  assert.equal(room.promisedWithin(pool), 80n * gibibyte);
  assert.equal(room.amplePool(pool.mountPoint, 10n * gibibyte)?.mountPoint, pool.mountPoint);
  assert.equal(room.amplePool(pool.mountPoint, 10n * gibibyte + 1n), undefined);
});

Deno.test("afterFirst() lets one call read for all, and the others go on when it has, or has failed", async () => {
  const { room, learn, clock } = await read(0n);
  await clock.advance(maxAgeMs + 1);
  const order: string[] = [];
  const first = room.afterFirst(async () => {
    order.push("first");
    await learn();
    await clock.sleep(10, new AbortController().signal);
    order.push("first ends");
  });
  const others = [2, 3].map((number) => room.afterFirst(() => Promise.resolve(order.push(`${number}`))));
  await Promise.all(others);
  assert.deepEqual(order, ["first", "2", "3"]);
  await clock.advance(10);
  await first;
  await clock.advance(maxAgeMs + 1);
  const failing = room.afterFirst(() => Promise.reject(new Error("no")));
  const next = room.afterFirst(() => Promise.resolve("next"));
  await assert.rejects(failing, /no/);
  assert.equal(await next, "next");
});

Deno.test("afterFirst() has another call read for all once the first has read, however long that goes on", async () => {
  const { room, learn, clock } = await read(0n);
  await clock.advance(maxAgeMs + 1);
  const copied = Promise.withResolvers<void>();
  const copying = room.afterFirst(async () => {
    await learn();
    await copied.promise;
  });
  await clock.advance(maxAgeMs + 1);
  const order: string[] = [];
  const second = room.afterFirst(async () => {
    await clock.sleep(10, new AbortController().signal);
    order.push("second");
    await learn();
  });
  const third = room.afterFirst(() => Promise.resolve(order.push("third")));
  copied.resolve();
  await copying;
  const fourth = room.afterFirst(() => Promise.resolve(order.push("fourth")));
  await clock.advance(10);
  await Promise.all([second, third, fourth]);
  assert.deepEqual(order, ["second", "third", "fourth"]);
});

Deno.test("forget() leaves no sum, not even of a read that is under way", async () => {
  const { room, pool, store, learn, clock } = await read(0n);
  await room.learnFrom(async () => {
    const view = await store.createView(undefined, testContext());
    room.forget();
    return view;
  });
  assert.deepEqual([room.isAmple(pool), room.expects(0n)], [false, false]);
  await clock.advance(1);
  await learn();
  assert.equal(room.isAmple(pool), true);
});

Deno.test("what was promised counts until a read that began after its call had ended", async () => {
  const { room, pool, clock, learn } = await read(0n);
  const isCounted = () => !room.isAmple(pool, 11n * gibibyte);
  const call = Promise.withResolvers<void>();
  const during = room.during(pool.mountPoint, 80n * gibibyte, () => call.promise);
  await clock.advance(1);
  await learn();
  call.resolve();
  await during;
  assert.equal(isCounted(), true);
  await clock.advance(1);
  await learn();
  assert.equal(isCounted(), false);
});

Deno.test("what a call that failed has promised counts as long as the router may still carry it out", async () => {
  const { room, pool, clock, learn } = await read(0n);
  const failing = room.during(pool.mountPoint, 95n * gibibyte, () => Promise.reject(new Error("lost")));
  await assert.rejects(failing, /lost/);
  await clock.advance(latestMs);
  await learn();
  assert.equal(room.isAmple(pool), false);
  await clock.advance(1);
  await learn();
  assert.equal(room.isAmple(pool), true);
});

Deno.test("a read that began earlier and came later changes nothing", async () => {
  const { room, pool, clock, store, learn } = await read(0n);
  const early = Promise.withResolvers<Awaited<ReturnType<typeof learn>>>();
  const old = room.learnFrom(() => early.promise);
  const empty = await store.createView(undefined, testContext());
  store.put({ ...aDisk(aRecord()), sizeBytes: 95n * gibibyte });
  await clock.advance(1);
  await learn();
  early.resolve(empty);
  await old;
  assert.equal(room.isAmple(pool), false);
});

Deno.test("a read while the router may still bring disks back is no sum, and takes none away", async () => {
  const { room, pool, store, clock, learn } = await read(0n);
  await clock.advance(1);
  await room.learnFrom(async () => ({
    ...await store.createView(undefined, testContext()),
    upMs: settleMs - 1,
  }));
  await clock.advance(maxAgeMs - 1);
  assert.equal(room.isAmple(pool), true, "the sum of the read before stands");
  await clock.advance(1);
  assert.equal(room.isAmple(pool), false, "the later read is not believed");
  await learn();
  assert.equal(room.isAmple(pool), true);
});

Deno.test("promisedNow() leaves out what was deleted until everything is read again, and nobody is promised that room", async () => {
  const { room, pool, clock, store, learn } = await read(80n);
  room.noteDeleted(pool.mountPoint, 30n * gibibyte);
  room.noteDeleted("another", 50n * gibibyte);
  assert.deepEqual([room.promisedNow(pool), room.promisedWithin(pool)], [50n * gibibyte, 80n * gibibyte]);
  assert.equal(room.isAmple(pool, 10n * gibibyte + 1n), false);
  assert.equal(room.amplePool(pool.mountPoint, 10n * gibibyte + 1n), undefined);
  store.edit("pvc-1", { sizeBytes: 50n * gibibyte });
  await clock.advance(1);
  await learn();
  assert.deepEqual([room.promisedNow(pool), room.promisedWithin(pool)], [50n * gibibyte, 50n * gibibyte]);
  room.noteDeleted(pool.mountPoint, 60n * gibibyte);
  assert.equal(room.promisedNow(pool), 0n, "never less than nothing");
  await clock.advance(maxAgeMs + 1);
  assert.equal(room.promisedNow(pool), undefined);
});
