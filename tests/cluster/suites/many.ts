import assert from "node:assert/strict";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { type Claim, claimOf, type Event, paths } from "../kit/objects.ts";
import { secondsSince, until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

const claimCount = 200;

/** A whole team's claims in one moment. */
export const suite: Suite = {
  what: `${claimCount} claims at once`,
  limitMinutes: 10,
  run: async (bench) => {
    const cluster = await bench.cluster({});
    const names = Array.from({ length: claimCount }, (_, index) => `claim-${index}`);
    const ok =
      await bench.test(`${claimCount} claims made at once are all bound, and none failed`, async () => {
        return await bindAll(cluster, names, bench);
      });
    if (!ok) return;
    await bench.test("deleted at once they are all gone, and leave nothing", async () => {
      const work = new Workload(cluster, bench.signal);
      const [started, before] = [performance.now(), await cluster.router.commands()];
      await work.remove(paths.claims, ...names);
      await work.gone(paths.volumes);
      const told = `${secondsSince(started)} s, ${await cluster.router.commands() - before} router commands`;
      return `${told}; ${await assertNothingLeft(cluster, bench.signal)}`;
    });
  },
};

async function bindAll(cluster: Cluster, names: readonly string[], bench: Bench): Promise<string> {
  const [started, before] = [performance.now(), await cluster.router.commands()];
  const options = { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" } as const;
  await Promise.all(names.map((name) => cluster.api.create(paths.claims, claimOf(name, options))));
  const bound = async () =>
    (await cluster.api.list<Claim>(paths.claims)).filter(({ status }) => status.phase === "Bound").length;
  await until(`${names.length} claims to be bound`, async () => await bound() === names.length, {
    limitSeconds: 300,
    everyMs: 500,
    signal: bench.signal,
    state: async () => `${await bound()} are bound; ${(await failures(cluster)).slice(0, 5).join("; ")}`,
  });
  const seconds = secondsSince(started);
  assert.deepEqual(await failures(cluster), []);
  const commands = await cluster.router.commands() - before;
  const disks = await cluster.router.control<{ disks: { type: string }[] }>("/state");
  assert.equal(disks.disks.filter(({ type }) => type === "file").length, names.length);
  return `${seconds} s, ${commands} router commands, ${(commands / names.length).toFixed(1)} a claim`;
}

/** What the provisioner complained of. */
async function failures(cluster: Cluster): Promise<string[]> {
  const events = await cluster.api.list<Event>(paths.events);
  return events.filter(({ reason }) => reason === "ProvisioningFailed")
    .map(({ involvedObject, message }) => `${involvedObject.name}: ${message}`);
}
