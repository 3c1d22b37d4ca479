// Snapshots and volumes from a source within ample room: what is concluded without a look at any other disk.
import assert from "node:assert/strict";
import {
  aCreate,
  gibibyte,
  inTime,
  testContext,
  testController,
} from "../../../tests/fakes/controller_deps.ts";
import { endings, endsAs } from "../../../tests/fakes/endings.ts";
import { aDisk, aRecord, aSnapshotId, subvolumeImage, testCluster } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import type { SourceRef } from "../../volume/model/sources.ts";
import { createSnapshot } from "../snapshots/create.ts";
import { deleteSnapshot } from "../snapshots/delete.ts";
import { createVolume } from "./create.ts";
import { maxAgeMs, PromisedRoom } from "./promised_room.ts";
import { getCapacity } from "./read.ts";

const context = testContext();
const fromVolume: SourceRef = { kind: "volume", id: "pvc-1" };
const fromSnapshot: SourceRef = { kind: "snapshot", id: aSnapshotId("s") };
const id = volumeIdFor("c");
const used = { epoch: { counter: 3, nonce: "0123abcd" } };

/** The only controller of a Btrfs router that has the volume `pvc-1` and its snapshot `s`: it knows how full the pool is. */
async function controller(record: Partial<VolumeRecord> = used, sizeBytes = gibibyte) {
  const made = testController({}, 1, undefined, true);
  const { store, deps } = made;
  store.tree.putSubvolume({ label: "pool-fs", path: "csi", readOnly: false, parent: undefined });
  const source = aDisk(aRecord(record), { sizeBytes });
  store.put(source);
  store.tree.contents.set(source.imagePath, "data");
  const snapshot = (name = "s") => createSnapshot(deps, { name, source: "pvc-1" }, context);
  const clone = (source: SourceRef, requiredBytes = gibibyte, limitBytes = 0n) =>
    createVolume(deps, aCreate("c", { source, range: { requiredBytes, limitBytes } }), context);
  await snapshot();
  store.takeCount();
  const commands = () => store.calls.splice(0).map(({ method }) => method);
  return { ...made, promised: deps.promised, snapshot, clone, commands };
}

type Made = Awaited<ReturnType<typeof controller>>;
const makings: Readonly<Record<string, (made: Pick<Made, "snapshot" | "clone">) => Promise<unknown>>> = {
  "a snapshot": ({ snapshot }) => snapshot("t"),
  "a restored volume": ({ clone }) => clone(fromSnapshot),
  "a clone": ({ clone }) => clone(fromVolume),
};
const methodOf = (what: string) => what === "a snapshot" ? "addSubvolume" : "addAlone";

for (const [what, make] of Object.entries(makings)) {
  Deno.test(`within ample room ${what} takes two commands, and one when it is there`, async () => {
    const made = await controller();
    await make(made);
    assert.deepEqual(made.commands(), ["sourceView", methodOf(what)]);
    await make(made);
    assert.deepEqual(made.commands(), ["sourceView"]);
    assert.deepEqual(made.store.violations, []);
  });

  Deno.test(`${what} within ample room converges however its command ended`, async () => {
    for (const ending of endings) {
      const made = await controller();
      made.store.mishap(methodOf(what), ending[1]);
      await endsAs(ending, make(made));
      await made.clock.advance(5_000);
      await make(made);
      const { disks, tree, violations } = made.store;
      const paths = [...tree.subvolumes.values()].map(({ path }) => path);
      const own = paths.filter((path) => path.includes(`${aSnapshotId("t")}.`) || path.includes(`${id}.`));
      assert.equal(own.length, 1, ending[0]);
      assert.equal(disks.has(id), what !== "a snapshot", ending[0]);
      assert.deepEqual(violations, [], ending[0]);
    }
  });

  Deno.test(`where room is scarce, or others promise it too, everything is read for ${what}`, async () => {
    const scarce = await controller(used, 28n * gibibyte);
    // 56 of 100 GiB; with it less than a tenth beside what is asked for would be left.
    await make(scarce);
    assert.ok(scarce.commands().includes("createView"));
    const shared = await controller();
    const deps = {
      ...shared.deps,
      promised: new PromisedRoom(shared.clock, shared.deps.settings, () => false),
    };
    const snapshot = () => createSnapshot(deps, { name: "t", source: "pvc-1" }, context);
    const clone = (source: SourceRef) => createVolume(deps, aCreate("c", { source }), context);
    await make({ snapshot, clone });
    assert.equal(shared.commands()[0], "createView");
    const late = await controller();
    await late.clock.advance(60_001);
    await make(late);
    assert.equal(late.commands()[0], "createView");
  });

  Deno.test(`what is promised to ${what} counts for the calls after it, until a read shows it`, async () => {
    const made = await controller(used, 20n * gibibyte);
    const pool = made.store.pools[0]!;
    const before = made.promised.promisedWithin(pool)!;
    await make(made);
    assert.equal(made.promised.promisedWithin(pool), before + 20n * gibibyte);
  });

  Deno.test(`${what} for which others took the room at the same time is taken back`, async () => {
    const made = await controller();
    const other = aDisk(aRecord(), { id: "other", sizeBytes: 99n * gibibyte, imagePath: "/pool/x.img" });
    const read = () => made.deps.store.createView(undefined, context);
    // A call that began meanwhile has read everything before this one was there.
    let learnt = Promise.resolve<unknown>(undefined);
    const before = () => {
      made.store.put(other);
      learnt = made.promised.learnFrom(read);
    };
    made.store.mishap(methodOf(what), { before, takesMs: 1 });
    const making = assert.rejects(make(made), refusal("exhausted", /others took the room/));
    await made.clock.advance(1);
    await Promise.all([making, learnt]);
    assert.ok(
      ![...made.store.tree.subvolumes.values()].some(({ path }) =>
        path.includes(`${aSnapshotId("t")}.`) || path.includes(`${id}.`)
      ),
    );
  });
}

Deno.test("within ample room no snapshot and no clone is made of a source that is deleted meanwhile", async () => {
  for (const [what, make] of Object.entries(makings)) {
    const made = await controller();
    const before = () => {
      const { store } = made;
      store.disks.delete("pvc-1");
      for (const path of ["pvc-1.", "snap-"]) {
        for (const [key, one] of store.tree.subvolumes) {
          if (!one.path.includes(path)) continue;
          store.tree.remove({ path: `/pool/${one.path}/disk.img`, subvolume: one });
          store.tree.subvolumes.delete(key);
        }
      }
    };
    made.store.mishap(methodOf(what), { before });
    await assert.rejects(make(made), refusal("unavailable"));
    assert.ok(!made.store.disks.has(id));
    await assert.rejects(make(made), refusal("not-found"), what);
  }
});

Deno.test("within ample room nothing is called blank that is published in between", async () => {
  for (const [what, make] of Object.entries(makings)) {
    if (what === "a restored volume") continue;
    const made = await controller({ epoch: { counter: 0, nonce: "0123abcd" } });
    await volumeCalls(made).publish();
    const comment = made.store.disks.get("pvc-1")!.comment;
    const again = await controller({ epoch: { counter: 0, nonce: "0123abcd" } });
    again.store.mishap(methodOf(what), { before: () => again.store.edit("pvc-1", { comment }) });
    await assert.rejects(make(again), refusal("unavailable", /nor its volume change meanwhile/), what);
    assert.ok(!again.store.disks.has(id));
    await make(again);
    assert.notEqual(again.store.disks.get(id)?.comment.includes(" b=1 "), true, what);
  }
});

Deno.test("a snapshot of a volume that was grown meanwhile is kept only after an exact read", async () => {
  const made = await controller();
  const grow = () => {
    const image = subvolumeImage("pvc-1");
    made.store.edit("pvc-1", { sizeBytes: 90n * gibibyte });
    made.store.putFile(image, 90n * gibibyte);
  };
  made.store.mishap("addSubvolume", { before: grow });
  await assert.rejects(made.snapshot("t"), refusal("exhausted", /others took the room/));
  assert.deepEqual(made.commands(), ["sourceView", "addSubvolume", "createView", "removeImage"]);
});

Deno.test("within ample room a clone is taken back whose source was expanded beyond the limit meanwhile", async () => {
  const made = await controller();
  const grow = () => {
    made.store.edit("pvc-1", { sizeBytes: 2n * gibibyte });
    made.store.putFile(subvolumeImage("pvc-1"), 2n * gibibyte);
  };
  made.store.mishap("addAlone", { before: grow });
  await assert.rejects(made.clone(fromVolume, gibibyte, gibibyte), refusal("out-of-range"));
  assert.deepEqual(made.commands(), ["sourceView", "addAlone", "remove"]);
  assert.ok(!made.store.disks.has(id));
});

Deno.test("within ample room a larger clone grows, also when an earlier try was cut off before that", async () => {
  const made = await controller();
  const grown = await made.clone(fromSnapshot, 2n * gibibyte);
  assert.equal(grown.stored.sizeBytes, 2n * gibibyte);
  assert.deepEqual(made.commands(), ["sourceView", "addAlone", "change"]);
  const again = await controller();
  again.store.mishap("change", { runs: false });
  await assert.rejects(again.clone(fromSnapshot, 2n * gibibyte), refusal("unavailable"));
  again.commands();
  assert.equal((await again.clone(fromSnapshot, 2n * gibibyte)).stored.sizeBytes, 2n * gibibyte);
  assert.deepEqual(again.commands(), ["sourceView", "change"]);
});

Deno.test("within ample room, too, nothing is answered that a late command of an earlier controller could take away", async () => {
  const made = await controller();
  const { deps, store, clock } = made;
  const clone = await made.clone(fromVolume);
  await made.snapshot("t");
  deps.memory.inDoubt.suspectOthers();
  await assert.rejects(made.snapshot("t"), refusal("busy", /previous controller/));
  await inTime(clock, made.clone(fromVolume));
  assert.notEqual(store.disks.get(id)!.comment, clone.stored.comment, "its record is written anew");
  store.mishap("removeImage", { late: true, unreadable: true });
  await assert.rejects(deleteSnapshot(deps, aSnapshotId("s"), context));
  await assert.rejects(made.snapshot(), refusal("busy", /may still happen/));
  store.runLate();
  assert.equal((await made.snapshot()).ready, true);
  await clock.advance(600_000);
  assert.equal((await made.snapshot("t")).ready, true);
});

Deno.test("within ample room a volume is restored whose snapshot's volume is gone, of the size that it had", async () => {
  const made = await controller();
  await volumeCalls(made).expand(3n);
  await volumeCalls(made).remove();
  made.store.takeCount();
  const restored = await made.clone(fromSnapshot);
  assert.equal(restored.stored.sizeBytes, gibibyte);
  assert.equal(made.store.tree.contents.get(restored.stored.imagePath), "data");
  assert.ok(restored.stored.imagePath.includes(`.${testCluster}/`));
});

Deno.test("getCapacity() shows the room of what was deleted at once, and reads everything no more often for it", async () => {
  const { deps, store, clock, commands } = await controller({}, 2n * gibibyte);
  const available = async () => (await getCapacity(deps, "/pool/csi", context)).availableBytes / gibibyte;
  await clock.advance(maxAgeMs + 1);
  assert.deepEqual([await available(), commands()], [96n, ["createView"]]);
  assert.deepEqual([await available(), commands()], [96n, ["state"]]);
  await deleteSnapshot(deps, aSnapshotId("s"), context);
  commands();
  assert.deepEqual([await available(), commands()], [98n, ["state"]]);
  await volumeCalls({ deps, store, clock }).remove();
  commands();
  assert.deepEqual([await available(), commands()], [100n, ["state"]]);
  store.put(aDisk(aRecord(), { id: "by-hand", sizeBytes: 5n * gibibyte }));
  await clock.advance(maxAgeMs + 1);
  assert.deepEqual([await available(), commands()], [95n, ["createView"]]);
  assert.deepEqual([await available(), commands()], [95n, ["state"]]);
});

Deno.test("createVolume() within ample room removes no volume whose record somebody has cut", async () => {
  for (const kept of [1, 40, 60]) {
    const { store, deps, clock, commands } = await controller();
    const made = await createVolume(deps, aCreate("c"), context);
    assert.deepEqual(commands(), ["addUnseen"]);
    await volumeCalls({ deps, store, clock }, id).publish();
    const { imagePath } = made.stored;
    store.tree.contents.set(imagePath, "data");
    store.edit(id, { comment: store.disks.get(id)!.comment.slice(0, kept), exported: false });
    await assert.rejects(createVolume(deps, aCreate("c"), context), refusal("precondition"));
    assert.deepEqual([store.disks.has(id), store.tree.contents.get(imagePath)], [true, "data"], String(kept));
  }
});
