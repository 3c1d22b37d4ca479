// The driver with damaged answers: it reports that it cannot read them, or returns the exact state. It never returns
// another volume, and never reports an unreadable volume as absent.
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Router } from "../../src/simulator/model/router.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { plainLocation } from "../../src/volume/model/layout.ts";
import type {
  FileView,
  Pool,
  StoredFile,
  StoredVolume,
  UnreadablePool,
} from "../../src/volume/model/inventory.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import { type StoreWrites, withWrites } from "../support/store_writes.ts";
import { fakeCall } from "../fakes/contexts.ts";
import { systemClock } from "../../src/host/clock.ts";
import { propertyTest } from "./_property.ts";
import { anyMishap, folder, type Mishap, routerOf, spelling, spoiledStore, volume } from "./_wire.ts";

const id = "pvc-0";
const filePrefix = `${id}.`;
const image = `${folder}/${id}.img`;
const call = () => fakeCall(systemClock);

/** The comparable part of every read. */
interface Seen {
  readonly volumes: readonly StoredVolume[];
  readonly files: readonly StoredFile[];
  readonly pools: readonly Pool[];
  readonly unreadablePools?: readonly UnreadablePool[];
  readonly upMs: number;
}

function truth(router: Router): Seen {
  const volumes = router.disks.list().filter((disk) => disk.type === "file").map((disk) => ({
    id: disk.slot,
    imagePath: disk.filePath,
    sizeBytes: disk.sizeBytes,
    exported: disk.exported,
    exportNqn: disk.nqn ?? "",
    exportPort: disk.port ?? 0,
    comment: disk.comment,
  }));
  const file = router.files.find(image.slice(1));
  const pool = router.poolOf(folder.slice(1))!;
  return {
    volumes: volumes.toSorted((a, b) => a.id < b.id ? -1 : 1),
    files: file === undefined ? [] : [{ path: image, sizeBytes: file.sizeBytes, directory: false }],
    pools: [{
      mountPoint: "storage-pool",
      filesystem: "btrfs",
      sizeBytes: pool.sizeBytes,
      freeBytes: router.freeBytes(pool),
      state: "clean",
      subvolumeLabel: "storage-pool-fs",
    }],
    upMs: Math.floor(router.system.uptimeMs / 1000) * 1000,
  };
}

/** The reads, and the part of the real state that each shows. */
const reads: Readonly<
  Record<string, (store: VolumeStore & StoreWrites) => Promise<{ seen: Seen; part: (whole: Seen) => Seen }>>
> = {
  "view()": async (store) => {
    const { volume, sharers, foreign, ...rest } = await store.view(id, filePrefix, call());
    assert.deepEqual([sharers, foreign], [[], undefined]);
    const part = (whole: Seen) => ({ ...whole, volumes: whole.volumes.filter((one) => one.id === id) });
    return { seen: { ...rest, volumes: volume === undefined ? [] : [volume] }, part };
  },
  "sourceView()": async (store) => {
    const wanted = { id: "pvc-9", filePrefix: "pvc-9.", folder: "" };
    const { volume, sharers, foreign, source, ...rest } = await store.sourceView(wanted, { id }, call());
    assert.deepEqual([volume, sharers, foreign], [undefined, [], undefined]);
    const seen = { ...rest, volumes: source === undefined ? [] : [source] };
    const own = (whole: Seen) => whole.volumes.filter((one) => one.id === id);
    return { seen, part: (whole) => ({ ...whole, volumes: own(whole), files: [] }) };
  },
  "createView()": async (store) => {
    const { foreign, ...seen } = await store.createView({ id, filePrefix, folder: "" }, call());
    assert.equal(foreign, undefined);
    return { seen, part: (whole) => whole };
  },
  "files()": async (store) => {
    const seen = { ...await store.files(filePrefix, call()), volumes: [] };
    return { seen, part: (whole) => ({ ...whole, volumes: [] }) };
  },
  "inventory()": async (store) => {
    const seen = { ...await store.inventory(call()), files: [] };
    return { seen, part: (whole) => ({ ...whole, files: [] }) };
  },
};

/** Properties that a disk may lack after a key was lost: disks without them are shown like this too. */
const unset = { comment: "", exportNqn: "", exportPort: 0 };

/** Properties that a pool may lack: then nothing new goes into a subvolume, and none can be removed. */
const unsaid = { filesystem: "", state: "", subvolumeLabel: undefined };

function assertSeen(reported: Seen, whole: Seen, mishap: Mishap): void {
  const loses = ["lacks a key", "has a value of another type", "has a changed character"].includes(
    mishap.kind,
  );
  if (!loses) return assert.deepEqual(reported, whole);
  // A value that is not "no" counts as a use by the router, or as leave for one. It only makes the driver refuse more.
  const volumesSeen = reported.volumes.map(({ routerUses: _, mayBeMounted: __, ...volume }) => volume);
  const { unreadablePools = [], ...rest } = reported;
  const seen = { ...rest, volumes: volumesSeen };
  assert.ok(
    seen.pools.length + unreadablePools.length <= whole.pools.length,
    "a row is one pool, read or not",
  );
  const volumes = whole.volumes.map((volume, index) => {
    const seenVolume = seen.volumes[index];
    if (seenVolume?.unreadable !== undefined) {
      assert.ok(seenVolume.exported || !volume.exported, "in doubt a disk that cannot be read is exported");
      return seenVolume;
    }
    const lost = Object.entries(unset).filter(([key, nothing]) =>
      seen.volumes[index]?.[key as keyof typeof unset] === nothing
    );
    return { ...volume, ...Object.fromEntries(lost) };
  });
  // A mounted disk without a mount point is not a pool; volumes on it are unavailable.
  const pools = whole.pools.slice(0, seen.pools.length).map((pool, index) => {
    const lost = Object.entries(unsaid).filter(([key, nothing]) =>
      seen.pools[index]![key as keyof typeof unsaid] === nothing
    );
    // A state may be read as a list. It is only for people, and decides nothing.
    const { state } = mishap.kind === "has a value of another type" ? seen.pools[index]! : pool;
    return { ...pool, state, ...Object.fromEntries(lost) };
  });
  assert.deepEqual(seen, { ...whole, volumes, pools });
}

for (const [name, reading] of Object.entries(reads)) {
  propertyTest(
    `${name} gives exactly what is there, or says that it cannot be read; asked again, it is right`,
    1800,
    fc.asyncProperty(
      fc.array(volume, { maxLength: 3 }),
      spelling,
      anyMishap,
      fc.boolean(),
      async (volumes, behaviours, mishap, spoilsAll) => {
        const router = routerOf(volumes, behaviours);
        const store = withWrites(spoiledStore(router, mishap, (index) => spoilsAll || index === 0));
        const lookAndCompare = async () => {
          const { seen, part } = await reading(store);
          assertSeen(seen, part(truth(router)), mishap);
        };
        try {
          await lookAndCompare();
        } catch (error) {
          if (!VolumeError.is(error, "unavailable")) throw error;
          // The answer was complete but unreadable. The driver does not retry that, so the caller does.
          if (!spoilsAll) await lookAndCompare();
        } finally {
          store.close();
        }
      },
    ),
  );
}

const nqn = `nqn.2000-02.com.mikrotik:${id}:2-01234567`;

/** Changes of a volume with a known comment, and the state that each shows afterwards. */
const changes: Readonly<
  Record<string, (store: VolumeStore & StoreWrites, comment: string) => Promise<StoredVolume | undefined>>
> = {
  "add()": async (store) => {
    const added = { id, location: plainLocation(image), sizeBytes: 1n << 30n, comment: "new" };
    return (await store.add(added, call())).after.volumes.find((one) => one.id === id);
  },
  "change()": async (store, comment) => {
    const change = { comment: "changed", export: { nqn, port: 4420 } };
    return (await store.change(id, comment, change, call())).after.volume;
  },
  "remove()": async (store, comment) =>
    (await store.remove({ id, comment }, plainLocation(image), filePrefix, call())).after.volume,
};

for (const [name, change] of Object.entries(changes)) {
  propertyTest(
    `${name} shows afterwards what is there, whatever becomes of its own answer`,
    1200,
    fc.asyncProperty(
      volume,
      fc.array(volume, { maxLength: 2 }),
      spelling,
      anyMishap,
      async (first, more, behaviours, mishap) => {
        const router = routerOf([first, ...more], behaviours);
        if (name === "add()") {
          router.disks.remove(router.disks.findBySlot(id)!.id);
          router.files.remove(image.slice(1));
        }
        const store = withWrites(spoiledStore(router, mishap, (index) => index === 1));
        try {
          await store.view(id, filePrefix, call());
          const shown = await change(store, first.comment);
          const whole = truth(router).volumes.filter((one) => one.id === id);
          const nothing = { files: [], pools: [], upMs: 0 };
          assertSeen({ ...nothing, volumes: shown === undefined ? [] : [shown] }, {
            ...nothing,
            volumes: whole,
          }, mishap);
        } finally {
          store.close();
        }
      },
    ),
  );
}

const subvolume = { label: "storage-pool-fs", path: "metal-csi/snap-1.x", readOnly: true };

/** Changes of files, the part of their paths, and the state that each shows afterwards. */
const fileChanges: Readonly<
  Record<
    string,
    readonly [part: string, change: (store: VolumeStore & StoreWrites) => Promise<Pick<FileView, "files">>]
  >
> = {
  "removeImage()": [
    filePrefix,
    async (store) => (await store.removeImage(plainLocation(image), filePrefix, call())).after,
  ],
  "renameFile()": [
    "/pvc-",
    async (store) => (await store.renameFile(image, `${folder}/pvc-9.img`, undefined, "/pvc-", call())).after,
  ],
  "addSubvolume()": [
    "/snap-1.",
    async (store) => (await store.addSubvolume(subvolume, "/snap-1.", call())).after,
  ],
};

for (const [name, [part, change]] of Object.entries(fileChanges)) {
  propertyTest(
    `${name} shows afterwards which files are there, whatever becomes of its own answer`,
    800,
    fc.asyncProperty(
      fc.array(volume, { minLength: 1, maxLength: 2 }),
      spelling,
      anyMishap,
      async (volumes, behaviours, mishap) => {
        const router = routerOf(volumes, behaviours);
        // A file that a disk uses is not removed or renamed.
        if (name !== "addSubvolume()") router.disks.remove(router.disks.findBySlot(id)!.id);
        const store = withWrites(spoiledStore(router, mishap, (index) => index === 1));
        try {
          await store.view(id, filePrefix, call());
          const { files } = await change(store);
          const there = router.files.list().map(({ path, kind, sizeBytes }) => ({
            path: `/${path}`,
            directory: kind !== "file",
            sizeBytes: kind === "file" ? sizeBytes : 0n,
          })).filter(({ path }) => path.includes(part));
          assert.deepEqual(files.toSorted(byPath), there.toSorted(byPath));
        } finally {
          store.close();
        }
      },
    ),
  );
}

function byPath(a: StoredFile, b: StoredFile): number {
  return a.path < b.path ? -1 : 1;
}
