// What a controller concludes from the room that it knows of: only ever that there is ample, and only where it is the only one.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { systemClock } from "../../src/host/clock.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { cost, create, createRequest, gibibyte, rejectsWith } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

/** A clock that can be put forward. */
function movable(): Clock & { ahead(ms: number): void } {
  let aheadMs = 0;
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    timer: (ms, callback) => systemClock.timer(ms, callback),
    ahead: (ms) => void (aheadMs += ms),
  };
}

const pools = [{ name: "storage-pool", sizeBytes: 100n * gibibyte }];

function sized(gib: bigint) {
  return { capacityRange: { requiredBytes: String(gib * gibibyte) } };
}

/** What a person does on the router. */
async function byHand(stack: Stack, command: string): Promise<void> {
  const body = JSON.stringify({ command });
  const answer = await fetch(`${stack.simulator.controlUrl}/console`, { method: "POST", body });
  assert.equal((await answer.json()).output, "", command);
}

const bigDisk = `/disk add type=file slot="by-hand" file-path="/storage-pool/by-hand.img" file-size=`;

/** Bytes that the router prints for a call. */
async function bytesFor(stack: Stack, work: () => Promise<unknown>): Promise<number> {
  const before = stack.simulator.journal.counts.bytes;
  await work();
  return stack.simulator.journal.counts.bytes - before;
}

async function expand(stack: Pick<Stack, "clients">, volumeId: string, gib: bigint): Promise<unknown> {
  return await stack.clients.controller.call("ControllerExpandVolume", { volumeId, ...sized(gib) });
}

Deno.test("creating, creating again and expanding read as much among 2,000 disks as among 100, in as many commands", async () => {
  const bytesAmong = async (seedDisks: number) => {
    await using stack = await startStack({ simulator: { seedDisks, pools: [{ name: "storage-pool" }] } });
    const first = await create(stack, "pvc-first");
    const bytes = {
      create: await bytesFor(stack, () => create(stack, "pvc-second")),
      again: await bytesFor(stack, () => create(stack, "pvc-second")),
      expand: await bytesFor(stack, () => expand(stack, first, 2n)),
    };
    assert.equal(await cost(stack, () => create(stack, "pvc-third")), 2);
    assert.equal(await cost(stack, () => create(stack, "pvc-third")), 1);
    assert.equal(await cost(stack, () => expand(stack, first, 3n)), 2);
    return bytes;
  };
  const [few, many] = [await bytesAmong(100), await bytesAmong(2000)];
  for (const call of ["create", "again", "expand"] as const) {
    assert.ok(many[call] <= 1.3 * few[call], `${call}: ${few[call]} and ${many[call]} bytes`);
  }
});

Deno.test("where less than a tenth of the pool would be left an exact read decides, and nothing is read twice", async () => {
  await using stack = await startStack({ simulator: { pools } });
  await create(stack, "pvc-1", sized(80n));
  // One look before, one with the disk, and one at the snapshots, as room is scarce.
  assert.equal(await cost(stack, () => create(stack, "pvc-2", sized(15n))), 3);
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-3", sized(6n)), /available=5368709120/);
  assert.equal(await cost(stack, () => create(stack, "pvc-4", sized(5n))), 3);
});

Deno.test("what a person adds is seen 60 s later at the latest, and what a person removes at once", async () => {
  const clock = movable();
  await using stack = await startStack({ simulator: { pools }, clock });
  await create(stack, "pvc-1");
  await byHand(stack, `${bigDisk}${90n * gibibyte}`);
  clock.ahead(60_001);
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-2", sized(10n)), /available=9663676416/);
  await byHand(stack, `/disk remove "by-hand"`);
  await create(stack, "pvc-2", sized(10n));
});

Deno.test("within 60 s what a person adds can be promised once more, but never what was known", async () => {
  await using stack = await startStack({ simulator: { pools } });
  await create(stack, "pvc-1", sized(40n));
  await byHand(stack, `${bigDisk}${55n * gibibyte}`);
  // The limit that docs/reference/limits.md tells of: 40 GiB were known, and a tenth is left of what is known.
  await create(stack, "pvc-2", sized(20n));
  // Not once it is known: 40, 55 and 20 GiB of 100.
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-3", sized(25n)), /available=0/);
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-4"), /available=0/);
});

Deno.test("a controller among others reads everything before and after, whatever it has just read", async () => {
  await using stack = await startStack({ simulator: { pools, seedDisks: 0 }, sharesRouter: true });
  const other = await stack.another();
  await create(stack, "pvc-1");
  await create(other, "pvc-2", sized(95n));
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-3", sized(5n)), /available=4294967296/);
  await create(stack, "pvc-3", sized(4n));
});

Deno.test("a controller that takes over knows nothing of the room that the one before it knew of", async () => {
  await using stack = await startStack({ simulator: { pools } });
  await create(stack, "pvc-1");
  const next = await stack.another();
  await create(stack, "pvc-2", sized(45n));
  await create(next, "pvc-3", sized(45n));
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(next, "pvc-4", sized(45n)), /available=9663676416/);
});

Deno.test("calls at once never promise more than the pool has, by whichever read they are decided", async () => {
  await using stack = await startStack({ simulator: { pools, behaviours: { interleave: true } } });
  await create(stack, "pvc-first");
  const calls = Array.from(
    { length: 40 },
    (_, index) =>
      stack.clients.controller.call(
        "CreateVolume",
        createRequest(`pvc-${index}`, sized(index % 4 === 0 ? 20n : 3n)),
      ),
  );
  const results = await Promise.allSettled(calls);
  const promised = stack.simulator.model.disks.list().filter(({ type }) => type === "file")
    .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  assert.ok(promised <= 100n * gibibyte, `${promised / gibibyte} GiB were promised`);
  const refused = results.flatMap((result) => result.status === "rejected" ? [result.reason.code] : []);
  assert.ok(refused.length > 0 && refused.length < 40, `${refused.length} were refused`);
  assert.deepEqual([...new Set(refused)], [status.RESOURCE_EXHAUSTED]);
});
