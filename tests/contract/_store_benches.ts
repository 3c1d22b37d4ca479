// Shared by the contract tests of a store: one over SSH to a simulated router, and one in memory.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import { FakeClock } from "../fakes/clock.ts";
import { testContext } from "../fakes/controller_deps.ts";
import { FakeVolumeStore } from "../fakes/volume_store.ts";
import { type StoreWrites, withWrites } from "../support/store_writes.ts";
import { withRouter } from "./_routeros_bench.ts";
import { subvolumeIn } from "./_routeros_images.ts";

/** A store, and where its volumes lie on its router. */
export interface StoreBench {
  readonly store: VolumeStore & StoreWrites;
  readonly call: () => CallContext;
  readonly folder: string;
  readonly label: string;
  /** Whether a folder or a file exists at a path. */
  readonly has: (path: string) => boolean;
  /** What the router has of a subvolume, by its path in the pool; undefined where there is none. */
  readonly subvolume: (
    path: string,
  ) => { readonly readOnly: boolean; readonly parentName: string } | undefined;
  /** Lets the router mount the file system of a volume. */
  readonly mount: (id: string) => Promise<void>;
  /** Writes into a volume that it is the file system of the folder's pool. */
  readonly takeLabel: (id: string) => Promise<void>;
}

/** Opens a store of each kind for a test. */
export const storeBenches: Readonly<
  Record<string, (test: (bench: StoreBench) => Promise<void>) => Promise<void>>
> = {
  "over SSH": (test) =>
    withRouter({}, ({ store, call, router }) => {
      const has = (path: string) => router.model.files.find(path.slice(1)) !== undefined;
      const [folder, label] = ["/storage-pool/metal-csi", "storage-pool-fs"];
      const mount = async (id: string) =>
        void await control(router, `PATCH /disks/${id}`, { "mount-point": "films" });
      const takeLabel = async (id: string) =>
        void await control(router, `PATCH /disks/${id}`, { "fs-label": label, "pool-fs": "btrfs" });
      const subvolume = (path: string) => subvolumeIn(router, path);
      return test({ store, call, has, subvolume, mount, takeLabel, folder, label });
    }),
  "in memory": async (test) => {
    const store = withWrites(new FakeVolumeStore(new FakeClock()));
    const has = (path: string) => store.allFiles.has(path);
    const subvolume = (path: string) => {
      const found = store.tree.find({ label: "pool-fs", path });
      return found && { readOnly: found.readOnly, parentName: found.parent?.split("/").at(-1) ?? "" };
    };
    const mount = (id: string) => {
      store.edit(id, { routerUses: ["its file system is mounted"] });
      return Promise.resolve();
    };
    const takeLabel = (labelTakenBy: string) => {
      store.pools = store.pools.map((pool) => ({ ...pool, labelTakenBy }));
      return Promise.resolve();
    };
    const call = () => testContext();
    await test({ store, call, has, subvolume, mount, takeLabel, folder: "/pool/csi", label: "pool-fs" });
    assert.deepEqual(store.violations, []);
  },
};
