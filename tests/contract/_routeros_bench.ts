// Shared by the contract tests of the RouterOS adapter: a simulated router, clients of it, the steps of a volume's life.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { parseHostKeys } from "../../src/routeros/ssh/host_key.ts";
import { Session } from "../../src/routeros/ssh/session.ts";
import type { SshTransport } from "../../src/routeros/ssh/transport.ts";
import { Ssh2Transport } from "../../src/routeros/ssh/ssh_transport.ts";
import { RouterVolumeStore } from "../../src/routeros/store/volume_store.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { plainLocation } from "../../src/volume/model/layout.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { ImageLocation, StoredVolume, Wanted } from "../../src/volume/model/inventory.ts";
import type { NewVolume } from "../../src/volume/ports/store.ts";
import { type FakeCall, fakeCall } from "../fakes/contexts.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { type StoreWrites, withWrites } from "../support/store_writes.ts";

export { rejectsWith } from "../fakes/volume_errors.ts";

export const folder = "/storage-pool/metal-csi";
export const slot = "pvc-0123456789abcdef0123456789ab";
export const gib = 1n << 30n;
export const record = "{rds1 c=1a2b3c4d n=0123456789ab k=fw p=9f8e7d6c b=1 x=01234567}";
export const held =
  "{rds1 c=1a2b3c4d n=0123456789ab k=fw p=9f8e7d6c b=1 e=1-ab12cd34 h=node-1@t1abc4/w x=89abcdef}";
export const nqn = `nqn.2000-02.com.mikrotik:${slot}:1-ab12cd34`;

export const filePrefix = filePrefixOf(slot);
/** The folder as a request to make it where it is missing. */
export const makeFolder = { path: folder, label: undefined };

export function filePrefixOf(id: string): string {
  return `${id}.1a2b3c4d`;
}

export function imageOf(id: string): string {
  return `${folder}/${filePrefixOf(id)}.img`;
}

export function locationOf(id: string): ImageLocation {
  return plainLocation(imageOf(id));
}

/** The request that a create of this volume sends to look at the router. */
export function wanted(id: string): Wanted {
  return { id, filePrefix: filePrefixOf(id), folder };
}

export interface Bench {
  readonly router: Simulator;
  readonly store: RouterVolumeStore & StoreWrites;
  /** Another client of the same router. @param watch looks at what is sent */
  another(watch?: (transport: SshTransport) => SshTransport): RouterVolumeStore & StoreWrites;
  call(ms?: number): CallContext;
  /** Exec requests and statements since the last call of this function. */
  cost(): { readonly execs: number; readonly statements: number };
}

/** A simulated router, and the timeouts of its clients. */
export interface BenchOptions extends SimulatorOptions {
  /** @default {300} */
  readonly commandTimeoutMs?: number;
}

export async function withRouter(
  { commandTimeoutMs = 300, ...options }: BenchOptions,
  test: (bench: Bench) => Promise<void>,
): Promise<void> {
  const router = await startSimulator({ timingScale: 0, hostKey: routerHostKey.privatePem, ...options });
  const stores: RouterVolumeStore[] = [];
  const calls: FakeCall[] = [];
  const call: Bench["call"] = (ms = 10_000) => {
    const made = fakeCall(systemClock, ms);
    calls.push(made);
    return made;
  };
  const clock = systemClock, random = systemRandom;
  const another: Bench["another"] = (watch = (transport) => transport) => {
    const transport = watch(
      new Ssh2Transport({
        host: "127.0.0.1",
        port: router.sshPort,
        user: "admin",
        authentication: { password: "admin" },
        hostKeys: parseHostKeys(router.hostKeyPublic, "127.0.0.1", router.sshPort),
        warning: assert.fail,
      }),
    );
    const session = new Session({ transport, clock, random, commandTimeoutMs });
    const store = withWrites(new RouterVolumeStore({ session, clock, random, copyTimeoutMs: 1000 }));
    stores.push(store);
    return store;
  };
  const cost = () => {
    const { execs, statements } = router.journal.counts;
    router.journal.resetCounts();
    return { execs, statements };
  };
  try {
    await test({ router, store: another(), another, call, cost });
    assert.deepEqual(router.violations.list(), []);
  } finally {
    for (const store of stores) store.close();
    for (const each of calls) each.cancel();
    await router.close();
  }
}

export function contractTest(
  name: string,
  test: (bench: Bench) => Promise<void>,
  options: SimulatorOptions = {},
): void {
  Deno.test(name, () => withRouter(options, test));
}

/** What the router really holds in a slot. */
export function truth(router: Simulator, id: string): StoredVolume | undefined {
  const disk = router.model.disks.findBySlot(id);
  if (disk === undefined) return undefined;
  return {
    id,
    imagePath: `/${disk.filePath.replace(/^\/+/, "")}`,
    sizeBytes: disk.sizeBytes,
    exported: disk.exported,
    exportNqn: disk.nqn ?? "",
    exportPort: disk.port ?? 0,
    comment: disk.comment,
  };
}

export function hasImage(router: Simulator, id: string): boolean {
  return router.model.files.find(imageOf(id).slice(1)) !== undefined;
}

export function newVolume(id = slot, comment = record): NewVolume {
  return { id, location: locationOf(id), sizeBytes: gib, comment };
}

export async function addOne({ store, call }: Bench, id = slot, comment = record): Promise<void> {
  const view = await store.createView(wanted(id), call());
  const known = view.files.some((file) => file.path === folder);
  const { after, refusal } = await store.add({
    ...newVolume(id, comment),
    ...known ? {} : { makeFolder },
  }, call());
  assert.ok(after.volumes.some((volume) => volume.id === id), refusal);
}

export type Step = "add" | "change" | "remove";

export interface StepPlan {
  readonly match: string;
  prepare(bench: Bench): Promise<void>;
  run(
    bench: Bench,
    call: CallContext,
  ): Promise<{ readonly shown: unknown; readonly refusal?: string }>;
  /** What must be true on the router after `run`, whatever `run` returned. */
  truth(router: Simulator): unknown;
  isDone(router: Simulator): boolean;
}

export const steps: Record<Step, StepPlan> = {
  add: {
    match: "/disk add",
    prepare: async (bench) => void await bench.store.createView(wanted(slot), bench.call()),
    run: async ({ store }, call) => {
      const view = await store.createView(wanted(slot), call);
      const present = view.volumes.find((volume) => volume.id === slot);
      if (present !== undefined) return { shown: present };
      const { after, refusal } = await store.add({ ...newVolume(), makeFolder }, call);
      return { shown: after.volumes.find((volume) => volume.id === slot), refusal };
    },
    truth: (router) => truth(router, slot),
    isDone: (router) => truth(router, slot)?.comment === record && hasImage(router, slot),
  },
  change: {
    match: "/disk set",
    prepare: (bench) => addOne(bench),
    run: async ({ store }, call) => {
      const change = { comment: held, export: { nqn, port: 4420 } };
      const { after, refusal } = await store.change(slot, record, change, call);
      return { shown: after.volume, refusal };
    },
    truth: (router) => truth(router, slot),
    isDone: (router) => truth(router, slot)?.exported === true && truth(router, slot)?.comment === held,
  },
  remove: {
    match: "/disk remove|/file remove",
    prepare: (bench) => addOne(bench),
    run: async ({ store, router }, call) => {
      const view = await store.view(slot, filePrefix, call);
      const image = locationOf(slot);
      if (view.volume === undefined) {
        const { after, refusal } = await store.removeImage(image, filePrefix, call);
        assert.equal(after.files.length > 0, hasImage(router, slot), "the files as they are");
        return { shown: undefined, refusal };
      }
      const { after, refusal } = await store.remove(view.volume, image, filePrefix, call);
      assert.equal(after.files.length > 0, hasImage(router, slot), "the files as they are");
      return { shown: after.volume, refusal };
    },
    truth: (router) => truth(router, slot),
    isDone: (router) => truth(router, slot) === undefined && !hasImage(router, slot),
  },
};
