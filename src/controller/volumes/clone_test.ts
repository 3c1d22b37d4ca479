import { endings, endsAs, refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { aCreate, gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  aSnapshotId,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { FakeSubvolume } from "../../../tests/fakes/store_files.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import type { VolumeErrorKind } from "../../volume/errors.ts";
import { parentFolder, volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { isNeverUsedMark, subvolumeLocation } from "../../volume/model/layout.ts";
import type { CreateRequest } from "../../volume/rules/provision.ts";
import { formatComment, rewritten, type VolumeRecord } from "../../volume/model/record.ts";
import type { SourceRef } from "../../volume/model/sources.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { createSnapshot } from "../snapshots/create.ts";
import type { ControllerSettings } from "../deps.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };
const fromVolume: SourceRef = { kind: "volume", id: "pvc-1" };
const fromSnapshot: SourceRef = { kind: "snapshot", id: aSnapshotId("s") };
const id = volumeIdFor("c");
const image = subvolumeImage(id);
const location = subvolumeLocation(parentFolder(image), "pool-fs");
const ofSize = (requiredBytes: bigint, limitBytes = 0n) => ({ range: { requiredBytes, limitBytes } });

/** A controller on a Btrfs router that has the volume `pvc-1`. */
function controller(
  settings: Partial<ControllerSettings> = {},
  record: Partial<VolumeRecord> = { epoch },
  disk: Partial<StoredVolume> = {},
) {
  const { store, deps, ...rest } = testController(settings);
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  const source = aDisk(aRecord(record), disk);
  store.put(source);
  store.tree.contents.set(source.imagePath, "data");
  const clone = (source: SourceRef = fromVolume, over: Partial<CreateRequest> = {}) =>
    createVolume(deps, aCreate("c", { source, ...over }), context);
  const snapshot = () => createSnapshot(deps, { name: "s", source: "pvc-1" }, context);
  return { store, deps, clone, snapshot, ...rest };
}

/** The marks of a clone that never had a disk. */
function marksIn(store: FakeVolumeStore): string[] {
  return [...store.allFiles.keys()].filter((path) => isNeverUsedMark(path, location));
}

function subvolumeOf(store: FakeVolumeStore): FakeSubvolume | undefined {
  return store.tree.subvolumeOf(image);
}

for (const source of [fromVolume, fromSnapshot]) {
  Deno.test(`createVolume() makes a writable volume with the data of a ${source.kind} in two commands`, async () => {
    const { store, clone, snapshot } = controller();
    await snapshot();
    store.takeCount();
    const made = await clone(source);
    assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["createView", "add"]);
    assert.equal(made.record.source, `${source.kind[0]}:${source.id}`);
    assert.deepEqual([made.record.holders, made.record.epoch?.counter], [[], 0]);
    const { imagePath, exported, sizeBytes } = made.stored;
    assert.deepEqual([imagePath, exported, sizeBytes], [image, false, gibibyte]);
    assert.equal(store.tree.contents.get(image), "data");
    assert.equal(subvolumeOf(store)?.readOnly, false);
    assert.deepEqual(await clone(source), made);
    assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
    assert.deepEqual(store.violations, []);
  });

  Deno.test(`createVolume() grows a larger clone of a ${source.kind}, also when it was cut off before that`, async () => {
    const larger = ofSize(2n * gibibyte);
    const { store, clone, snapshot } = controller();
    await snapshot();
    store.takeCount();
    const made = await clone(source, larger);
    assert.deepEqual(store.calls.map((call) => call.method), ["createView", "add", "change"]);
    assert.equal(made.stored.sizeBytes, 2n * gibibyte);

    const cases: [Mishap, VolumeErrorKind | undefined][] = [
      [{ runs: true, refusal: "interrupted" }, undefined],
      [{ runs: false }, "unavailable"],
      [{ refusal: "failure: no" }, "unavailable"],
      [{ unreadable: true }, "unavailable"],
      [{ runs: false, unreadable: true }, "unavailable"],
    ];
    for (const [mishap, kind] of cases) {
      const { store, clone, snapshot } = controller();
      await snapshot();
      store.mishap("change", mishap);
      const call = clone(source, larger);
      await (kind === undefined ? call : assert.rejects(call, refusal(kind)));
      const made = await clone(source, larger);
      assert.equal(made.stored.sizeBytes, 2n * gibibyte);
      assert.deepEqual(store.disks.get(id), made.stored);
      assert.deepEqual(store.violations, []);
    }
  });
}

Deno.test("createVolume() cuts nothing of a clone whose growth the router forgot", async () => {
  const { store, clone } = controller();
  await clone(fromVolume);
  store.putFile(image, 4n * gibibyte);
  assert.equal((await clone(fromVolume, ofSize(2n * gibibyte))).stored.sizeBytes, 4n * gibibyte);
  assert.deepEqual(store.violations, []);
});

Deno.test("createVolume() clones a volume that is in use, and does not touch it", async () => {
  const { store, clone } = controller({}, { epoch, holders: [aHolder("a")] });
  const before = store.disks.get("pvc-1");
  const made = await clone();
  assert.deepEqual(store.disks.get("pvc-1"), before);
  assert.deepEqual([made.stored.exported, made.record.holders], [false, []]);
});

Deno.test("createVolume() restores a snapshot whose volume is gone", async () => {
  const { store, deps, clone, snapshot } = controller();
  await snapshot();
  await deleteVolume(deps, "pvc-1", context);
  await clone(fromSnapshot);
  assert.equal(store.tree.contents.get(image), "data");
});

Deno.test("createVolume() lets a clone be formatted only when nothing can be in it", async () => {
  const cases: [Partial<VolumeRecord>, number][] = [
    [{ epoch: { counter: 0, nonce: "0123abcd" } }, 1],
    [{ epoch: undefined }, 1],
    [{ epoch }, 0],
    [{ epoch, blankEpoch: 4 }, 0],
    [{ epoch: { counter: 1, nonce: "0123abcd" }, holders: [aHolder("a")] }, 0],
    [{ epoch: { counter: 0, nonce: "0123abcd" }, blankEpoch: 0 }, 0],
  ];
  for (const [record, blankEpoch] of cases) {
    const { clone, snapshot } = controller({}, record);
    assert.equal((await snapshot()).blank, blankEpoch === 1);
    assert.equal((await clone()).record.blankEpoch, blankEpoch, JSON.stringify(record));
    const other = controller({}, record);
    await other.snapshot();
    assert.equal((await other.clone(fromSnapshot)).record.blankEpoch, blankEpoch, JSON.stringify(record));
  }
});

Deno.test("createVolume() clones a volume into its own file system, or into a raw block volume, only", async () => {
  const kinds = {
    ext4: { access: "mount", filesystem: "ext4" },
    xfs: { access: "mount", filesystem: "xfs" },
    block: { access: "block" },
  } as const;
  const cases = [["ext4", "xfs", false], ["xfs", "ext4", false], ["ext4", "block", true], [
    "block",
    "xfs",
    true,
  ]] as const;
  for (const [held, asked, isMade] of cases) {
    for (const record of [{ epoch }, { epoch: { ...epoch, counter: 0 }, blankEpoch: 1 }]) {
      const { clone, snapshot, store } = controller({}, { ...record, capabilities: `${held}/w` });
      await snapshot();
      const over = { capabilities: { kind: kinds[asked], modes: ["single-node-writer" as const] } };
      const other = refusal("invalid", new RegExp(`holds=${held} asked=${asked};.*fstype=${held}$`));
      if (isMade) await clone(fromVolume, over);
      else await refusedUnchanged(store, () => clone(fromVolume, over), other);
    }
    // The name of a snapshot does not tell what it holds.
    const { clone, snapshot } = controller({}, { epoch, capabilities: `${held}/w` });
    await snapshot();
    await clone(fromSnapshot, { capabilities: { kind: kinds[asked], modes: ["single-node-writer"] } });
  }
});

Deno.test("createVolume() refuses xfs from a blank snapshot that is too small for it", async () => {
  const blank = { epoch: { counter: 0, nonce: "0123abcd" }, blankEpoch: 1 };
  const { clone, snapshot, store } = controller({}, blank, { sizeBytes: 256n << 20n });
  await snapshot();
  const kind = { access: "mount", filesystem: "xfs" } as const;
  const xfs = { capabilities: { kind, modes: ["single-node-writer" as const] } };
  const small = { ...xfs, ...ofSize(0n) };
  await refusedUnchanged(store, () => clone(fromSnapshot, small), refusal("out-of-range", /xfs needs/));
  await clone(fromSnapshot, { ...xfs, ...ofSize(300n << 20n) });
});

Deno.test("createVolume() makes no blank clone of a volume that is published in between", async () => {
  const { store, clone } = controller({}, { epoch: { counter: 0, nonce: "0123abcd" } });
  const published = aDisk(aRecord({ epoch: { counter: 1, nonce: "0123abcd" }, holders: [aHolder("a")] }));
  store.mishap("add", { before: () => store.edit("pvc-1", published) });
  await assert.rejects(clone(), refusal("unavailable", /nor its volume change meanwhile/));
  assert.deepEqual([store.disks.has(id), subvolumeOf(store)?.path], [false, "csi"]);
  assert.equal((await clone()).record.blankEpoch, 0);
});

Deno.test("createVolume() grows a clone where disks grow only while they are not exported", async () => {
  const { clone } = controller({ growth: "after-toggle" });
  const made = await clone(fromVolume, ofSize(2n * gibibyte));
  assert.equal(made.stored.sizeBytes, 2n * gibibyte);
});

Deno.test("createVolume() takes a clone back that the router did not grow, so that nothing is left of it", async () => {
  const { store, clone } = controller();
  const before = store.snapshot();
  store.mishap("change", { after: () => store.edit(id, { sizeBytes: gibibyte }) });
  await assert.rejects(
    clone(fromVolume, ofSize(2n * gibibyte)),
    refusal("precondition", /took the new size and did not grow the disk/),
  );
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("createVolume() takes no clone back that somebody may have been told of", async () => {
  const { store, deps, clone } = controller();
  const made = await clone();
  const larger = ofSize(2n * gibibyte);
  store.mishap("change", { after: () => store.edit(id, { sizeBytes: gibibyte }) });
  await assert.rejects(clone(fromVolume, larger), refusal("precondition", /did not grow the disk/));
  assert.equal(store.disks.get(id)?.imagePath, made.stored.imagePath);
  store.mishap("change", { after: () => store.edit(id, { sizeBytes: gibibyte }) });
  const again = createVolume(deps, aCreate("c", { source: fromVolume, ...larger }), context);
  await assert.rejects(again, refusal("precondition", /did not grow the disk/));
  assert.ok(store.disks.has(id) && store.allFiles.has(image));
});

Deno.test("createVolume() takes no clone back that another controller has grown and given to a node meanwhile", async () => {
  const { store, clone } = controller();
  store.mishap("change", { after: () => store.edit(id, { sizeBytes: gibibyte }) });
  const before = () => {
    const { stored, comment, record } = getOwned(store.disks.get(id)!, testCluster, "test");
    const given = { ...rewritten(record), epoch, holders: [aHolder("a")] };
    store.edit(stored.id, { comment: formatComment({ ...comment, record: given }), exported: true });
  };
  for (const next of ["view", "remove"] as const) store.mishap(next, { before });
  const making = clone(fromVolume, ofSize(2n * gibibyte));
  await assert.rejects(making, refusal("unavailable", /Cannot remove the volume again/));
  assert.ok(store.disks.has(id) && store.allFiles.has(image));
});

Deno.test("createVolume() refuses a source that is larger than the limit, and gives its size where none is asked", async () => {
  const { store, clone } = controller({}, { epoch }, { sizeBytes: 3n * gibibyte });
  await refusedUnchanged(
    store,
    () => clone(fromVolume, ofSize(gibibyte, 2n * gibibyte)),
    refusal("out-of-range"),
  );
  assert.equal((await clone()).stored.sizeBytes, 3n * gibibyte);
});

for (const source of [fromVolume, fromSnapshot]) {
  Deno.test(`createVolume() never adopts a used clone of a ${source.kind} whose delete was cut off`, async () => {
    const { store, deps, clock, clone, snapshot } = controller({ unexportGraceMs: 0 });
    const { publish, unpublish, remove } = volumeCalls({ store, deps, clock }, id);
    await snapshot();
    await clone(source);
    await publish();
    store.tree.contents.set(image, "written");
    await unpublish();
    store.mishap("remove", { runs: "half" });
    store.mishap("removeImage", { runs: false });
    await assert.rejects(remove(), refusal("unavailable", /image is still there/));
    await refusedUnchanged(store, () => clone(source), refusal("precondition", /exists without a disk/));
    assert.equal(store.tree.contents.get(image), "written");
    await remove();
    await clone(source);
    assert.equal(store.tree.contents.get(image), "data");
    assert.deepEqual(store.violations, []);
  });
}

Deno.test("createVolume() makes anew a clone that never had a disk, in any controller", async () => {
  for (const mishap of [{ runs: "half" }, { runs: "half", unreadable: true }] as const) {
    const { store, clone, deps } = controller();
    store.mishap("add", mishap);
    await assert.rejects(clone(), refusal("unavailable"));
    assert.ok(store.allFiles.has(image) && !store.disks.has(id));
    store.tree.contents.set(`/pool/csi/pvc-1.${testCluster}/disk.img`, "later data");
    deps.memory.inDoubt.suspectOthers();
    store.takeCount();
    for (const ineffective of [{ runs: false }, { refusal: "failure: busy" }]) {
      store.mishap("removeImage", ineffective);
      await assert.rejects(clone(), refusal("unavailable", /still has an earlier attempt/));
    }
    store.takeCount();
    await clone();
    assert.deepEqual(store.calls.map((call) => call.method), ["createView", "removeImage", "add"]);
    assert.equal(store.tree.contents.get(image), "later data");
    assert.deepEqual(marksIn(store), []);
    assert.deepEqual(store.violations, []);
  }
});

Deno.test("createVolume() tries again when what an earlier try sent makes the clone's disk right now", async () => {
  const { store, clone } = controller();
  store.mishap("add", { runs: "half", unreadable: true });
  await assert.rejects(clone(), refusal("unavailable"));
  const late = () => {
    for (const mark of marksIn(store)) store.allFiles.delete(mark);
    store.disks.set(id, aDisk(aRecord(), { id, imagePath: image }));
  };
  store.mishap("removeImage", { before: late });
  await assert.rejects(clone(), refusal("unavailable", /still has an earlier attempt/));
  assert.ok(store.allFiles.has(image));
});

Deno.test("createVolume() removes the clone whose disk the router refuses", async () => {
  const { store, clone } = controller();
  store.refusesDisks = true;
  await refusedUnchanged(store, () => clone(), refusal("unavailable", /failure: no/));
  store.refusesDisks = false;
  await clone();
  assert.deepEqual(store.violations, []);
});

Deno.test("createVolume() leaves a clone with its mark to the next try, and removes none that is not there", async () => {
  for (const [mishap, marks] of [[{ runs: "half" }, 1], [{ runs: false }, 0]] as const) {
    const { store, clone } = controller();
    store.mishap("add", { ...mishap, refusal: "failure: no" });
    await assert.rejects(clone(), refusal("unavailable", /failure: no/));
    assert.equal(marksIn(store).length, marks);
    assert.deepEqual(store.calls.map(({ method }) => method).slice(-2), ["add", "files"]);
  }
});

Deno.test("createVolume() adopts nothing that lies where the clone is to be", async () => {
  const parent = `csi/pvc-1.${testCluster}`;
  const cases: [string, (store: FakeVolumeStore) => void][] = [
    ["of its source", (store) => store.putImage(image, gibibyte, { parent })],
    ["of no parent", (store) => store.putImage(image, gibibyte)],
    ["of another volume", (store) => store.putImage(image, gibibyte, { parent: `csi/pvc-2.${testCluster}` })],
    ["of another cluster's", (store) => store.putImage(image, gibibyte, { parent: "csi/pvc-1.ffffffff" })],
    ["that cannot be written", (store) => store.putImage(image, gibibyte, { parent, readOnly: true })],
    ["in a plain folder", (store) => store.putFile(image, gibibyte)],
    ["a plain file", (store) => store.putFile(plainImage(id), gibibyte)],
  ];
  for (const [name, put] of cases) {
    const { store, clone } = controller();
    put(store);
    await refusedUnchanged(store, () => clone(), refusal("precondition", /exists without a disk/), name);
  }
});

Deno.test("createVolume() converges however the addition of a clone ended", async () => {
  for (const ending of endings) {
    const [name, mishap] = ending;
    const { store, clone } = controller();
    store.mishap("add", mishap);
    await endsAs(ending, clone());
    const made = await clone();
    assert.deepEqual(store.disks.get(id), made.stored, name);
    assert.deepEqual(store.violations, []);
  }
});

Deno.test("createVolume() does not clone what is not provably there, or uses another file", async () => {
  const cases: [string, (made: ReturnType<typeof controller>) => void, VolumeErrorKind, RegExp][] = [
    [
      "gone",
      ({ store }) => (store.disks.clear(), store.allFiles.clear()),
      "not-found",
      /Cannot clone .*pvc-1/,
    ],
    ["just booted", ({ store }) => (store.disks.clear(), store.reboot()), "unavailable", /booted only/],
    ["its image is there", ({ store }) => store.hidden.add("pvc-1"), "unavailable", /its image is there/],
    [
      "another file",
      ({ store }) => store.edit("pvc-1", { imagePath: "/pool/csi/precious.img" }),
      "precondition",
      /a file of another name/,
    ],
  ];
  for (const [name, arrange, kind, text] of cases) {
    const made = controller();
    arrange(made);
    await refusedUnchanged(made.store, () => made.clone(), refusal(kind, text), name);
  }
});

Deno.test("createVolume() restores only a whole snapshot of this cluster in an allowed folder", async () => {
  const name = (end: string, cluster = testCluster, base = testBase) =>
    `${base}/${fromSnapshot.id}.pvc-1.1.n.${cluster}${end}`;
  const cases: [string, string | undefined, VolumeErrorKind, RegExp][] = [
    ["none", undefined, "not-found", /Cannot restore .*there is none/],
    ["another cluster's", name("/disk.img", "ffffffff"), "not-found", /there is none/],
    ["elsewhere", name("/disk.img", testCluster, "/pool/backup"), "not-found", /there is none/],
    ["half copied", name(".img.0123abcd.part"), "unavailable", /still being copied/],
  ];
  for (const [what, path, kind, text] of cases) {
    const { store, clone } = controller();
    if (path !== undefined) store.putImage(path, gibibyte);
    await refusedUnchanged(store, () => clone(fromSnapshot), refusal(kind, text), what);
  }
  const { store, clone } = controller();
  store.reboot();
  await assert.rejects(clone(fromSnapshot), refusal("unavailable", /booted only/));
});

Deno.test("createVolume() finds no room for a clone before it makes anything", async () => {
  const { store, clone } = controller({}, { epoch }, { sizeBytes: 51n * gibibyte });
  await refusedUnchanged(store, () => clone(), refusal("exhausted"));
});

Deno.test("createVolume() takes a clone back when others took the room for it or for its growth", async () => {
  for (const sizeBytes of [gibibyte, 2n * gibibyte]) {
    const { store, clone } = controller();
    const rest = 99n * gibibyte - sizeBytes;
    store.put(aDisk(aRecord(), { id: "other", sizeBytes: rest, imagePath: "/pool/x.img" }));
    const late = aDisk(aRecord(), { id: "late", sizeBytes: gibibyte, imagePath: "/pool/y.img" });
    store.mishap("add", { before: () => store.put(late) });
    await assert.rejects(
      clone(fromVolume, ofSize(sizeBytes)),
      refusal("exhausted", /others took the room at the same time: .*1 GiB too much/),
    );
    assert.deepEqual([...store.disks.keys()], ["pvc-1", "other", "late"]);
    assert.equal(subvolumeOf(store)?.path, "csi");
  }
});

Deno.test("createVolume() counts a source that grew meanwhile as it is", async () => {
  const { store, clone } = controller();
  store.put(aDisk(aRecord(), { id: "other", sizeBytes: 80n * gibibyte, imagePath: "/pool/x.img" }));
  const grown = { sizeBytes: 11n * gibibyte };
  store.mishap("add", {
    before: () => {
      store.edit("pvc-1", grown);
      store.putFile(subvolumeImage("pvc-1"), grown.sizeBytes);
    },
  });
  await assert.rejects(clone(), refusal("exhausted", /2 GiB too much/));
});

Deno.test("createVolume() takes a clone back whose source was expanded beyond the limit meanwhile", async () => {
  const { store, clone } = controller();
  const grow = () => {
    store.edit("pvc-1", { sizeBytes: 2n * gibibyte });
    store.putFile(subvolumeImage("pvc-1"), 2n * gibibyte);
  };
  store.mishap("add", { before: grow });
  const limited = ofSize(gibibyte, gibibyte);
  await assert.rejects(clone(fromVolume, limited), refusal("out-of-range", /source is larger/));
  assert.deepEqual([...store.disks.keys()], ["pvc-1"]);
  assert.equal(subvolumeOf(store)?.path, "csi");
  assert.equal((await clone(fromVolume, ofSize(gibibyte))).stored.sizeBytes, 2n * gibibyte);
});

Deno.test("createVolume() refuses a clone of the same name that was made from something else", async () => {
  const { clone, snapshot, deps } = controller();
  await snapshot();
  await clone();
  await assert.rejects(clone(fromSnapshot), refusal("exists-incompatible", /made from v:pvc-1, not s:snap/));
  await assert.rejects(
    createVolume(deps, aCreate("c"), context),
    refusal("exists-incompatible", /not nothing/),
  );
});

for (const source of [fromVolume, fromSnapshot]) {
  Deno.test(`createVolume() copies an encrypted ${source.kind} into an encrypted volume only`, async () => {
    for (const isEncrypted of [true, false]) {
      const { store, clone, snapshot } = controller({}, {
        epoch,
        capabilities: isEncrypted ? "ext4/ew" : "ext4/w",
      });
      if (source.kind === "snapshot") assert.equal((await snapshot()).encrypted, isEncrypted);
      const { capabilities } = aCreate("c");
      const before = store.snapshot();
      await assert.rejects(
        clone(source, { capabilities: { ...capabilities, encrypted: !isEncrypted } }),
        refusal("invalid", /its source is (?:not )?encrypted/),
      );
      assert.deepEqual(store.snapshot(), before);
      const made = await clone(source, { capabilities: { ...capabilities, encrypted: isEncrypted } });
      assert.equal(made.record.capabilities, isEncrypted ? "ext4/ew" : "ext4/w");
    }
  });
}
