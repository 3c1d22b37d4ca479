// Shared by the contract tests of the RouterOS adapter: volumes in subvolumes, snapshots of them, copies of images.
import assert from "node:assert/strict";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { plainLocation, subvolumeLocation } from "../../src/volume/model/layout.ts";
import type { NewVolume } from "../../src/volume/ports/store.ts";
import type { StoredFile } from "../../src/volume/model/inventory.ts";
import {
  addOne,
  type Bench,
  filePrefix,
  filePrefixOf,
  folder,
  gib,
  imageOf,
  locationOf,
  record,
  slot,
  type StepPlan,
  truth,
  wanted,
} from "./_routeros_bench.ts";

/** The label of the file system of the simulator's pool. */
export const label = "storage-pool-fs";
/** Id of the volume that a snapshot is restored to. */
export const restored = "pvc-fedcba9876543210fedcba987654";
/** The part that all paths of the snapshot contain. */
export const snapshotPart = `/snap-${"0".repeat(28)}.`;
export const snapshot = subvolumeLocation(`${folder}${snapshotPart}${slot}.tabcde.n.1a2b3c4d`, label);
/** The path to which an image is copied, and the path of the finished copy. */
export const unfinished = `${folder}${snapshotPart}${slot}.tabcde.n.1a2b3c4d.img.00ff00ff.part`;
export const copy = plainLocation(unfinished.slice(0, -".00ff00ff.part".length));

/** The location of an image in a subvolume. */
export function innerPlace(id: string) {
  const location = subvolumeLocation(`${folder}/${filePrefixOf(id)}`, label);
  return { path: location.path, subvolume: location.subvolume! };
}

/** A volume in a subvolume of its own, with the folder as one too. */
export function newInnerVolume(id = slot): NewVolume {
  const location = innerPlace(id);
  return {
    id,
    location,
    subvolume: { ...location.subvolume, readOnly: false },
    makeFolder: { path: folder, label },
    sizeBytes: gib,
    comment: record,
  };
}

/** A volume restored from the snapshot. */
export function newRestoredVolume(): NewVolume {
  const volume = newInnerVolume(restored);
  return {
    ...volume,
    subvolume: { ...volume.subvolume!, parent: snapshot.subvolume! },
    sizeBytes: undefined,
  };
}

/** The snapshot, as a read-only subvolume to be made. */
export const newSnapshot = {
  ...snapshot.subvolume!,
  parent: innerPlace(slot).subvolume,
  readOnly: true,
};

export async function addInner(bench: Bench): Promise<void> {
  const volume = newInnerVolume();
  await bench.store.createView(wanted(volume.id), bench.call());
  const { after, refusal } = await bench.store.add(volume, bench.call());
  assert.ok(after.volumes.some(({ id }) => id === volume.id), refusal);
}

export async function addSnapshot(bench: Bench): Promise<void> {
  const { after, refusal } = await bench.store.addSubvolume(newSnapshot, snapshotPart, bench.call());
  assert.equal(after.files.length, 2, refusal);
}

/** The files on the router whose paths contain the text. */
export function filesHolding(router: Simulator, part: string): StoredFile[] {
  return router.model.files.list().map(({ path, kind, sizeBytes }) => ({
    path: `/${path}`,
    directory: kind !== "file",
    sizeBytes: kind === "file" ? sizeBytes : 0n,
  })).filter(({ path }) => path.includes(part));
}

export function hasSubvolume(router: Simulator, path: string): boolean {
  return router.model.subvolumes.find(`storage-pool/${path}`) !== undefined;
}

/** What a router has of a subvolume: whether it can be written, and the last segment of its parent's path; undefined for none. */
export function subvolumeIn(
  router: Simulator,
  path: string,
): { readOnly: boolean; parentName: string } | undefined {
  const { subvolumes } = router.model;
  const found = subvolumes.find(`storage-pool/${path}`);
  if (found === undefined) return undefined;
  const parent = subvolumes.list().find(({ uuid }) => uuid === found.sourceUuid);
  return { readOnly: found.readOnly, parentName: parent?.path.split("/").at(-1) ?? "" };
}

/** Removes what an earlier attempt left, then adds what is missing. */
function addPlan(volume: NewVolume): Pick<StepPlan, "run" | "truth" | "isDone"> {
  const { id, location } = volume;
  return {
    run: async ({ store }, call) => {
      const view = await store.createView(wanted(id), call);
      const present = view.volumes.find((volume) => volume.id === id);
      if (present !== undefined) return { shown: present };
      if (view.files.some(({ path }) => path.includes(filePrefixOf(id)))) {
        await store.removeImage(location, filePrefixOf(id), call);
      }
      const { after, refusal } = await store.add(volume, call);
      return { shown: after.volumes.find((volume) => volume.id === id), refusal };
    },
    truth: (router) => truth(router, id),
    isDone: (router) =>
      truth(router, id)?.imagePath === location.path && hasSubvolume(router, location.subvolume!.path),
  };
}

/** The steps with subvolumes. */
export const subvolumeSteps: Readonly<Record<string, StepPlan>> = {
  "add in a subvolume": {
    match: "/disk add",
    prepare: async (bench) => void await bench.store.createView(wanted(slot), bench.call()),
    ...addPlan(newInnerVolume()),
  },
  snapshot: {
    match: "subvolume/add",
    prepare: (bench) => addInner(bench),
    run: async ({ store }, call) => {
      const view = await store.files(snapshotPart, call);
      if (view.files.length > 0) return { shown: view.files };
      const { after, refusal } = await store.addSubvolume(newSnapshot, snapshotPart, call);
      return { shown: after.files, refusal };
    },
    truth: (router) => filesHolding(router, snapshotPart),
    isDone: (router) => hasSubvolume(router, snapshot.subvolume!.path),
  },
  "restore a snapshot": {
    match: "/disk add",
    prepare: async (bench) => {
      await addInner(bench);
      await addSnapshot(bench);
    },
    ...addPlan(newRestoredVolume()),
  },
  "remove a subvolume": {
    match: "/disk remove|subvolume/remove",
    prepare: (bench) => addInner(bench),
    run: async ({ store }, call) => {
      const view = await store.view(slot, filePrefix, call);
      const { after, refusal } = view.volume === undefined
        ? await store.removeImage(innerPlace(slot), filePrefix, call)
        : await store.remove(view.volume, innerPlace(slot), filePrefix, call);
      return { shown: after.files, refusal };
    },
    truth: (router) => filesHolding(router, filePrefix),
    isDone: (router) =>
      truth(router, slot) === undefined && !hasSubvolume(router, innerPlace(slot).subvolume.path),
  },
  "remove a snapshot": {
    match: "subvolume/remove",
    prepare: async (bench) => {
      await addInner(bench);
      await addSnapshot(bench);
    },
    run: async ({ store }, call) => {
      const { after, refusal } = await store.removeImage(snapshot, snapshotPart, call);
      return { shown: after.files, refusal };
    },
    truth: (router) => filesHolding(router, snapshotPart),
    isDone: (router) => !hasSubvolume(router, snapshot.subvolume!.path),
  },
};

/** The steps with copies. */
export const copySteps: Readonly<Record<string, StepPlan>> = {
  "copy and rename": {
    match: "/file copy|/file set",
    prepare: (bench) => addOne(bench),
    run: async ({ store }, call) => {
      const view = await store.files(snapshotPart, call);
      if (view.files.some(({ path }) => path === copy.path)) return { shown: view.files };
      await store.removeImage(plainLocation(unfinished), snapshotPart, call);
      const { done, refusal } = await store.copyFile(imageOf(slot), unfinished, call);
      if (!done) return { shown: (await store.files(snapshotPart, call)).files, refusal };
      const source = { id: slot, comment: record };
      const renamed = await store.renameFile(unfinished, copy.path, source, snapshotPart, call);
      return { shown: renamed.after.files, refusal: renamed.refusal };
    },
    truth: (router) => filesHolding(router, snapshotPart),
    isDone: (router) => filesHolding(router, snapshotPart).some(({ path }) => path === copy.path),
  },
  "remove a copy": {
    match: "/file remove",
    prepare: async (bench) => {
      await addOne(bench);
      await bench.store.copyFile(imageOf(slot), copy.path, bench.call());
    },
    run: async ({ store }, call) => {
      const { after, refusal } = await store.removeImage(copy, snapshotPart, call);
      return { shown: after.files, refusal };
    },
    truth: (router) => filesHolding(router, snapshotPart),
    isDone: (router) => filesHolding(router, snapshotPart).length === 0,
  },
};

/** A plain volume made from a copy that does not have its final name yet. */
export function newCopiedVolume(): NewVolume {
  return {
    id: restored,
    location: locationOf(restored),
    sizeBytes: undefined,
    comment: record,
    copied: { path: `${imageOf(restored)}.00ff00ff.part` },
  };
}
