// A router that answers from a model, and a store that uses it, for the tests of the store.
import { FakeClock } from "../fakes/clock.ts";
import { type FakeCall, fakeCall } from "../fakes/contexts.ts";
import { SeededRandom } from "../fakes/random.ts";
import { answering, type FakeRouter, FakeSshTransport } from "../fakes/ssh_transport.ts";
import type { Pool, StoredVolume } from "../../src/volume/model/inventory.ts";
import { Session } from "../../src/routeros/ssh/session.ts";
import { type StoreWrites, withWrites } from "./store_writes.ts";
import { RouterVolumeStore, type RouterVolumeStoreOptions } from "../../src/routeros/store/volume_store.ts";

/** The text that the paths of the volume `s1` contain. */
export const filePrefix = "s1.1a2b3c4d";
/** Its image, as a plain file. */
export const path = `/pool/csi/${filePrefix}.img`;

/** A pool in the router's output. */
export const poolRow = {
  slot: "raid1",
  type: "raid",
  mounted: true,
  "mount-point": "pool",
  fs: "btrfs",
  "fs-label": "pool-fs",
  size: 100,
  free: 40,
  state: "clean",
};

/** The pools of a router with that one, from the store. */
export const pools: readonly Pool[] = [{
  mountPoint: "pool",
  filesystem: "btrfs",
  sizeBytes: 100n,
  freeBytes: 40n,
  state: "clean",
  subvolumeLabel: "pool-fs",
}];

/** A disk in the router's output. */
export function diskRow(slot: string, more: object = {}): object {
  return {
    slot,
    type: "file",
    "file-path": `/pool/csi/${slot}.1a2b3c4d.img`,
    size: 1024,
    "nvme-tcp-export": false,
    ...more,
  };
}

/** The same disk from the store. */
export function volume(id: string, more: Partial<StoredVolume> = {}): StoredVolume {
  return {
    id,
    imagePath: `/pool/csi/${id}.1a2b3c4d.img`,
    sizeBytes: 1024n,
    exported: false,
    exportNqn: "",
    exportPort: 0,
    comment: "",
    ...more,
  };
}

/** A file in the router's output. */
export function fileRow(path: string, size = 1024): object {
  return { name: path.slice(1), type: ".img file", size };
}

/** The state of a router, from which it answers. */
export interface Model {
  disks: object[];
  files: object[];
  uptime: string;
  version: string;
}

/** A store and its router. */
export interface StoreBench {
  readonly clock: FakeClock;
  readonly ssh: FakeSshTransport;
  readonly session: Session;
  readonly store: RouterVolumeStore & StoreWrites;
  /** The router's state, which a test may change. */
  readonly held: Model;
  /** The answers to the next commands, if they differ. */
  readonly replies: FakeRouter[];
  readonly warnings: string[];
  call(): FakeCall;
}

/** Makes one. */
export function bench(
  model: Partial<Model> = {},
  options: Partial<RouterVolumeStoreOptions> = {},
): StoreBench {
  const clock = new FakeClock();
  const random = new SeededRandom();
  const held: Model = {
    disks: [poolRow],
    files: [],
    uptime: "1d00:00:00",
    version: "7.24.4 (stable)",
    ...model,
  };
  const print = (query: string) => {
    if (query.startsWith("/disk")) return JSON.stringify(held.disks);
    if (query.startsWith("/file")) return JSON.stringify(held.files);
    if (query.startsWith("/system package")) {
      return JSON.stringify([{ name: "rose-storage", disabled: false }]);
    }
    return JSON.stringify({ uptime: held.uptime, version: held.version, "board-name": "RDS2216" });
  };
  const good = answering(print);
  const replies: FakeRouter[] = [];
  const ssh = new FakeSshTransport((command, signal) => (replies.shift() ?? good)(command, signal));
  const session = new Session({ transport: ssh, clock, random });
  const warnings: string[] = [];
  const store = withWrites(
    new RouterVolumeStore({
      session,
      clock,
      random,
      observer: { warning: (message) => warnings.push(message) },
      ...options,
    }),
  );
  return { clock, ssh, session, store, held, replies, warnings, call: () => fakeCall(clock) };
}
