// What holds for every copy of an image, whatever it becomes: a volume or a snapshot.
import assert from "node:assert/strict";
import { aCreate, gibibyte, inTime, testContext } from "../../../tests/fakes/controller_deps.ts";
import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  aSnapshotId,
  plainImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { plainSource, sourceEpoch as epoch, withPlainSource } from "../../../tests/fakes/plain_source.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import { cutCopies } from "../../../tests/fakes/mishap.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import type { ControllerDeps, ControllerSettings } from "../deps.ts";
import { createSnapshot } from "../snapshots/create.ts";
import { deleteSnapshot } from "../snapshots/delete.ts";
import { ImageCopies } from "./copies.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";

const context = testContext();

/** What a copy can become. */
interface Maker {
  /** Under which the copy is made. */
  readonly id: string;
  /** A path that an unfinished copy of an earlier process may have. */
  readonly unfinished: string;
  /** Answers with the path of the image. */
  make(deps: ControllerDeps, call: typeof context): Promise<string>;
  remove(deps: ControllerDeps): Promise<void>;
}

const goesOn = refusal("unavailable", /its data is still being copied/);
const volumeId = volumeIdFor("c");
const snapshotId = aSnapshotId("s");

const makers: Readonly<Record<string, Maker>> = {
  "createVolume()": {
    id: volumeId,
    unfinished: `${plainImage(volumeId)}.0123abcd.part`,
    async make(deps, call) {
      const request = aCreate("c", { source: { kind: "volume", id: "pvc-1" } });
      return (await createVolume(deps, request, call)).stored.imagePath;
    },
    remove: (deps) => deleteVolume(deps, volumeId, context),
  },
  "createSnapshot()": {
    id: snapshotId,
    unfinished: `${testBase}/${snapshotId}.pvc-1.1.n.${testCluster}.img.0123abcd.part`,
    async make(deps, call) {
      return (await createSnapshot(deps, { name: "s", source: "pvc-1" }, call)).imagePath;
    },
    remove: (deps) => deleteSnapshot(deps, snapshotId, context),
  },
};

for (const [name, maker] of Object.entries(makers)) {
  const controller = (...options: Parameters<typeof withPlainSource>) => {
    const { deps, store, clock, soon, publish: use, unpublish: unuse, ...rest } = withPlainSource(...options);
    const make = (call = context) => maker.make(deps, call);
    return {
      ...{ deps, store, clock, soon, use, unuse, make, ...rest },
      /** Begins a copy that takes a minute, for a call that does not. */
      begin: async () => {
        store.mishap("copyFile", { takesMs: 60_000 });
        await assert.rejects(inTime(clock, make(soon())), goesOn);
      },
      copies: () => store.calls.filter(({ method }) => method === "copyFile").length,
    };
  };

  Deno.test(`${name} believes in no copy that is shorter than its source, whatever the router said of it`, async () => {
    const { store, make, paths } = controller();
    // The first one is of the source, before the copy.
    for (const mishap of [{}, { before: () => cutCopies(store) }]) store.mishap("view", mishap);
    await assert.rejects(make(), refusal("unavailable", /reported an incomplete copy as complete/));
    assert.deepEqual([paths(), store.disks.size], [[], 1]);
    assert.deepEqual([await make()], paths());
  });

  Deno.test(`${name} believes in no copy that is shorter than an image whose disk the router shows too small`, async () => {
    const { store, make, paths } = controller();
    store.putFile(plainSource, 3n * gibibyte);
    const cut = () => {
      for (const path of store.allFiles.keys()) if (path.endsWith(".part")) store.putFile(path, gibibyte);
    };
    for (const mishap of [{}, { before: cut }]) store.mishap("view", mishap);
    await assert.rejects(make(), refusal("unavailable", /incomplete copy as complete: .*image=3221225472/));
    assert.deepEqual([paths(), store.disks.size], [[], 1]);
    assert.deepEqual([await make()], paths());
  });

  Deno.test(`${name} believes in no copy during which the router restarted, as its record may be an earlier one`, async () => {
    const { store, clock, make, paths } = controller();
    store.mishap("copyFile", { takesMs: 5_000 });
    for (const mishap of [{}, { before: () => store.reboot() }]) store.mishap("view", mishap);
    await assert.rejects(
      inTime(clock, make()),
      refusal("unavailable", /router restarted while its data was copied/),
    );
    assert.deepEqual([paths(), store.disks.size], [[], 1]);
  });

  Deno.test(`${name} says which copies began before its own`, async () => {
    const { deps, store, clock, make, soon } = controller();
    const about = { source: "v:pvc-8", sourcePath: "/x", target: { path: "/y", subvolume: undefined } };
    const hung = new AbortController();
    const never = () =>
      new Promise<never>((_, reject) => (hung.signal.onabort = () => reject(hung.signal.reason)));
    const other = deps.copies.join("pvc-hung", about, never, soon());
    store.mishap("copyFile", { takesMs: 60_000 });
    await assert.rejects(
      inTime(clock, make(soon())),
      refusal("unavailable", /copies for pvc-hung began before it/),
    );
    await other;
    hung.abort(new Error("ended"));
    await clock.advance(0);
    await assert.rejects(inTime(clock, make(soon())), (error: Error) => !/began before/.test(error.message));
    await inTime(clock, make());
  });

  Deno.test(`${name} copies only where that certainly gives a whole file of one moment`, async () => {
    const held = { epoch, holders: [aHolder("a")] };
    const cases: [Partial<ControllerSettings>, Partial<VolumeRecord>, Partial<StoredVolume>, RegExp][] = [
      [{ copyReturns: undefined }, { epoch }, {}, /it is not known .*: run rds-csi doctor --probe/],
      [{ copyReturns: "at-once" }, { epoch }, {}, /answers before the copy is complete/],
      [{}, held, {}, /of a published volume.*stop its pods first/],
      [{}, held, { exported: false }, /of a published volume/],
      [{}, { epoch }, { exported: true }, /of a published volume/],
    ];
    for (const [settings, record, disk, text] of cases) {
      const { store, make } = controller(settings, record, disk);
      await refusedUnchanged(store, () => make(), refusal("precondition", text));
    }
  });

  Deno.test(`${name} copies no image that the router itself or another disk uses too, from the beginning or meanwhile`, async () => {
    const uses: [(store: FakeVolumeStore) => void, RegExp][] = [
      [(store) => store.edit("pvc-1", { routerUses: ["its file system is mounted"] }), /router itself uses/],
      [(store) => store.edit("pvc-1", { routerUses: ["it is swap space"] }), /router itself uses.*swap/],
      [
        (store) => store.disks.set("other", { ...store.disks.get("pvc-1")!, id: "other", comment: "" }),
        /another disk uses its image.*disk=other/,
      ],
    ];
    for (const [use, text] of uses) {
      for (const when of ["always", "at first", "meanwhile"]) {
        const { store, make, paths, copies } = controller();
        const idle = store.disks.get("pvc-1")!;
        const end = () => void (store.disks.delete("other"), store.disks.set("pvc-1", idle));
        if (when !== "meanwhile") use(store);
        store.mishap("copyFile", { after: () => when === "at first" ? end() : use(store) });
        await assert.rejects(make(), refusal("precondition", text), when);
        if (when !== "meanwhile") await assert.rejects(make(), refusal("precondition", text), when);
        assert.deepEqual([paths(), copies()], [[], when === "meanwhile" ? 1 : 0], when);
      }
    }
  });

  Deno.test(`${name} waits out the grace of the source's last withdrawal before it copies`, async () => {
    const { store, clock, make, use, unuse } = controller();
    store.lingerMs = 10_000;
    await use();
    await unuse();
    const startMs = clock.now();
    let copiedMs = 0;
    store.mishap("copyFile", { before: () => copiedMs = clock.now() });
    await inTime(clock, make());
    assert.ok(copiedMs >= startMs + 10_000);
  });

  Deno.test(`${name} goes on copying after its call, and a later one gets the result`, async () => {
    const { deps, clock, make, begin, soon, paths, copies } = controller();
    await begin();
    await assert.rejects(inTime(clock, make(soon())), goesOn);
    assert.deepEqual([await inTime(clock, make())], paths());
    assert.deepEqual([copies(), deps.copies.find(maker.id)], [1, undefined]);
  });

  Deno.test(`${name} goes on copying when the caller goes away`, async () => {
    const { store, clock, make, paths, copies } = controller();
    const gone = new AbortController();
    store.mishap("copyFile", { takesMs: 60_000 });
    const call = assert.rejects(make(testContext({ signal: gone.signal })), /gone/);
    await clock.advance(1_000);
    gone.abort(new Error("gone"));
    await call;
    assert.deepEqual([await inTime(clock, make())], paths());
    assert.equal(copies(), 1);
  });

  Deno.test(`${name} starts over where another process began, and leaves nothing of that`, async () => {
    const { store, deps, paths } = controller();
    store.putFile(maker.unfinished, 40n * gibibyte);
    const others = [
      maker.unfinished.replace(testCluster, "ffffffff"),
      maker.unfinished.replace(testBase, "/pool/other"),
      maker.unfinished.replace(maker.id, aSnapshotId("t")),
      `${testBase}/x.img.0123abcd.part`,
    ];
    for (const path of others) store.putFile(path);
    const restarted = { ...deps, copies: new ImageCopies(deps.clock) } as ControllerDeps;
    const made = await maker.make(restarted, context);
    assert.deepEqual(paths(), [...others, made]);
  });

  Deno.test(`${name} discards a copy during which the source was used`, async () => {
    const { store, clock, make, begin, use, unuse, paths } = controller();
    await begin();
    await use();
    await unuse();
    const changed = /was changed while it was copied: .*(?:source|volume)=pvc-1/;
    await assert.rejects(inTime(clock, make()), refusal("busy", changed));
    assert.deepEqual([paths(), store.disks.size], [[], 1]);
    assert.deepEqual([await inTime(clock, make())], paths());
  });

  Deno.test(`${name} discards a copy during which a person has turned the export of its source on`, async () => {
    const { store, clock, make, use, unuse, paths } = controller();
    await use();
    await unuse();
    store.mishap("copyFile", { takesMs: 20_000 });
    const made = make();
    await clock.advance(15_000);
    store.edit("pvc-1", { exported: true });
    await assert.rejects(inTime(clock, made), refusal("busy", /was changed while it was copied/));
    assert.deepEqual([paths(), store.disks.size], [[], 1]);
  });

  Deno.test(`${name} ends the copy when it is refused for good, and leaves nothing of it`, async () => {
    const cases = [["precondition", "used"], ["not-found", "gone"]] as const;
    for (const [kind, what] of cases) {
      const { store, deps, clock, make, begin, use, paths } = controller();
      await begin();
      store.putFile(maker.unfinished, 5n);
      await (what === "used" ? use() : deleteVolume(deps, "pvc-1", context));
      await assert.rejects(inTime(clock, make()), refusal(kind), what);
      assert.deepEqual([paths(), deps.copies.find(maker.id)], [[], undefined], what);
    }
  });

  Deno.test(`${name} leaves nothing of a copy that failed, and the next try succeeds`, async () => {
    const cases: [string, Mishap, RegExp][] = [
      ["refused", { refusal: "failure: no space left" }, /answered "failure: no space left"/],
      ["did not run", { runs: false }, /not copied to the end/],
      ["cut off in the middle", { runs: "half" }, /reported an incomplete copy as complete/],
      ["cut off and refused", { runs: "half", refusal: "interrupted" }, /answered "interrupted"/],
      ["end unknown", { unreadable: true }, /not copied to the end/],
      ["half, end unknown", { runs: "half", unreadable: true }, /not copied to the end/],
    ];
    for (const [ending, mishap, text] of cases) {
      const { store, make, paths } = controller();
      store.mishap("copyFile", mishap);
      await assert.rejects(make(), refusal("unavailable", text), ending);
      assert.deepEqual([paths(), store.disks.size], [[], 1], ending);
      assert.deepEqual([await make()], paths(), ending);
      assert.deepEqual(store.violations, []);
    }
  });

  Deno.test(`${name} says so when it cannot remove what is left of a copy, and the next try does`, async () => {
    const { store, make, paths, notes } = controller();
    store.mishap("copyFile", { runs: "half" });
    store.mishap("removeImage", { runs: false, unreadable: true });
    await assert.rejects(make(), refusal("unavailable", /incomplete copy as complete/));
    assert.equal(paths().length, 1);
    assert.deepEqual(notes, ["an unfinished copy could not be removed"]);
    assert.deepEqual([await make()], paths());
  });

  Deno.test(`${name} does not miss the room that its own copy takes`, async () => {
    const { store, clock, make, begin, paths } = controller({}, { epoch }, { sizeBytes: 20n * gibibyte });
    const free = (freeBytes: bigint) => store.pools = store.pools.map((pool) => ({ ...pool, freeBytes }));
    free(30n * gibibyte);
    await begin();
    await clock.advance(60_000);
    assert.equal(paths()[0]?.endsWith(".part"), true);
    free(10n * gibibyte);
    await inTime(clock, make());
  });

  Deno.test(`${name} finds no room before it copies, or takes its copy back when others took it`, async () => {
    const full = controller({}, { epoch }, { sizeBytes: 51n * gibibyte });
    await assert.rejects(full.make(), refusal("exhausted"));
    assert.deepEqual([full.paths(), full.store.takeCount()], [[], 1]);

    const { store, make, paths } = controller({}, { epoch }, { sizeBytes: 40n * gibibyte });
    const other = aDisk(aRecord(), { id: "other", sizeBytes: 30n * gibibyte, imagePath: "/pool/x.img" });
    store.mishap("copyFile", { before: () => store.put(other) });
    await assert.rejects(make(), refusal("exhausted", /others took the room/));
    assert.deepEqual([paths(), [...store.disks.keys()]], [["/pool/x.img"], ["pvc-1", "other"]]);
  });

  Deno.test(`deleting what ${name} makes ends the copy that goes on for it, and leaves nothing`, async () => {
    const { store, deps, begin, paths } = controller();
    await begin();
    store.putFile(maker.unfinished, 5n);
    await maker.remove(deps);
    assert.deepEqual([paths(), deps.copies.find(maker.id)], [[], undefined]);
  });
}
