import assert from "node:assert/strict";
import {
  assertAgreement,
  attach,
  attached,
  detach,
  detached,
  exportsOf,
  pair,
  type Pairing,
} from "../kit/attachments.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { claimOf, paths } from "../kit/objects.ts";
import { allShown, leaseHolder } from "../kit/shown.ts";
import { pause, secondsSince, until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

const volumeCount = 100;
const nodes = ["fake-1", "fake-2", "fake-3", "fake-4"];
/** How long after a restart of the controller an object may say something wrong of who holds its volume, in seconds. */
const shownSeconds = 30;
/** How long the controller is away. */
const awayMs = 2_000;

/** The controller does not live to see the end of what it has begun. */
export const suite: Suite = {
  what: `the controller is killed in the middle of ${volumeCount} attachments, and of as many detachments`,
  limitMinutes: 15,
  run: async (bench) => {
    const cluster = await bench.cluster({ fakeNodes: nodes });
    const work = new Workload(cluster, bench.signal);
    const claims = Array.from({ length: volumeCount }, (_, index) => `claim-${index}`);
    const options = { mode: "Block", mebibytes: 1024, storageClass: "rds-ext4" } as const;
    await Promise.all(claims.map((claim) => work.create(paths.claims, claimOf(claim, options))));
    const pairings = pair(await Promise.all(claims.map((claim) => work.bound(claim))), nodes);
    const isAttached = await bench.test(
      "killed while it attaches, and started again: all are attached, and rightly",
      () => attachThrough(cluster, pairings, bench),
    );
    if (!isAttached) return;
    await bench.test("killed while it detaches, and started again: nothing is exported any more", async () => {
      return await detachThrough(cluster, pairings, bench);
    });
    await bench.test("the volumes can be deleted, and leave nothing", async () => {
      await work.remove(paths.claims, ...claims);
      await work.gone(paths.volumes);
      return await assertNothingLeft(cluster, bench.signal);
    });
  },
};

async function attachThrough(cluster: Cluster, pairings: readonly Pairing[], bench: Bench): Promise<string> {
  const started = performance.now();
  const former = await leaseHolder(cluster, bench.signal);
  await attach(cluster, pairings);
  const killedAt = await killWhen(cluster, bench, (exported) => exported >= volumeCount * 0.3);
  const restarted = performance.now();
  assert(killedAt < volumeCount, "all were attached before the controller was killed");
  await attached(cluster, volumeCount, bench.signal);
  const seconds = secondsSince(started);
  // They end when they lose the driver, and it is as if the kubelet started them again.
  assert(cluster.sidecarRestarts > 0, "the sidecars have not noticed that the controller was away");
  const told = await assertAgreement(cluster, pairings);
  const shown = await shownInTime(cluster, restarted, bench);
  assert.equal(shown.count, volumeCount);
  await leaseHolder(cluster, bench.signal, former);
  return `killed at ${killedAt} exports, all attached after ${seconds} s: ${told}; ${shown.told}`;
}

async function detachThrough(cluster: Cluster, pairings: readonly Pairing[], bench: Bench): Promise<string> {
  const started = performance.now();
  await detach(cluster, pairings);
  const killedAt = await killWhen(cluster, bench, (exported) => exported <= volumeCount * 0.7);
  const restarted = performance.now();
  assert(killedAt > 0, "all were detached before the controller was killed");
  await detached(cluster, bench.signal);
  assert.deepEqual(await exportsOf(cluster), []);
  const seconds = secondsSince(started);
  const shown = await shownInTime(cluster, restarted, bench);
  assert.equal(shown.count, 0);
  return `killed at ${killedAt} exports, all detached after ${seconds} s; ${shown.told}`;
}

/** Waits until the volumes' objects say who holds them: no longer than so many seconds after the restart. */
async function shownInTime(cluster: Cluster, restarted: number, bench: Bench) {
  const leftSeconds = shownSeconds - (performance.now() - restarted) / 1000;
  const count = await allShown(cluster, bench.signal, Math.max(leftSeconds, 0));
  return { count, told: `their objects say so ${secondsSince(restarted)} s after the restart` };
}

/** Kills the controller as soon as the number of exports is like that, and starts another; answers that number. */
async function killWhen(
  cluster: Cluster,
  bench: Bench,
  isTime: (exported: number) => boolean,
): Promise<number> {
  const count = async () => (await exportsOf(cluster)).length;
  const limits = { limitSeconds: 60, everyMs: 10, signal: bench.signal };
  await until("the middle of it", async () => isTime(await count()), limits);
  await cluster.controller.kill();
  const killedAt = await count();
  await pause(awayMs);
  await cluster.controller.start(bench.signal);
  return killedAt;
}
