// Deleting by what the controller remembers of its last change, as far as that differs from other calls (unread_calls_test).
import assert from "node:assert/strict";
import { inTime, rememberingController, testContext } from "../../../tests/fakes/controller_deps.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import {
  aDisk,
  aHolder,
  aRecord,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { ControllerSettings } from "../deps.ts";
import { deleteUnowned } from "./delete.ts";

const context = testContext();
const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };

interface Options {
  readonly settings?: Partial<ControllerSettings>;
  readonly disk?: ReturnType<typeof aDisk>;
}

/** A controller that has made the volume last and published it to nobody. */
function remembering({ settings = {}, disk = aDisk(aRecord()) }: Options = {}) {
  const made = rememberingController(disk, settings);
  const { store } = made;
  const isGone = () =>
    !store.disks.has(id) && !store.allFiles.has(disk.imagePath) && store.tree.subvolumes.size === 0 &&
    store.violations.length === 0;
  return { ...made, ...volumeCalls(made), isGone };
}

for (const imagePath of [plainImage(id), subvolumeImage(id)]) {
  Deno.test(`deleteVolume() takes one command for a volume that this controller has changed last: ${imagePath}`, async () => {
    const { remove, methods, isGone, deps } = remembering({ disk: aDisk(aRecord(), { imagePath }) });
    const freed: unknown[] = [];
    deps.promised.noteDeleted = (...noted) => void freed.push(noted);
    await remove();
    assert.deepEqual([methods(), isGone()], [["removeUnseen"], true]);
    assert.deepEqual([deps.memory.known.get(id), freed], [undefined, [["pool", 1n << 30n]]]);
    await remove();
    assert.deepEqual(methods(), ["view", "inventory"], "nothing is there any more");
  });
}

Deno.test("deleteVolume() takes one command for a volume that this controller has unpublished last", async () => {
  const { publish, unpublish, remove, methods, isGone } = remembering();
  await publish();
  methods();
  await assert.rejects(remove(), refusal("precondition", /published.*node=a/));
  assert.deepEqual(methods(), ["view"], "a holder is told of by a read");
  await unpublish();
  methods();
  await remove();
  assert.deepEqual([methods(), isGone()], [["removeUnseen"], true]);
});

/** What keeps a volume that is remembered from being deleted unread. */
const readFirst: Readonly<Record<string, Options>> = {
  "a newer version wrote its record": { disk: aDisk(aRecord({ newerFields: ["z=1"] })) },
  "its last export may linger": {
    settings: { unexportGraceMs: 5_000 },
    disk: aDisk(aRecord({ epoch, withdrawnAtSeconds: 1_700_000_000 })),
  },
  "its export is on": { disk: aDisk(aRecord({ epoch }), { exported: true }) },
  "a node holds it": { disk: aDisk(aRecord({ epoch, holders: [aHolder("a")] })) },
  "it was imported": {
    disk: aDisk(aRecord({ source: importedSource(id, `${testBase}/theirs.img`) }), {
      imagePath: `${testBase}/theirs.img`,
    }),
  },
  "it is on another file": { disk: aDisk(aRecord(), { imagePath: `${testBase}/other.img` }) },
};

for (const [name, options] of Object.entries(readFirst)) {
  Deno.test(`deleteVolume() reads first where ${name}`, async () => {
    const { remove, methods } = remembering(options);
    await remove().catch(() => undefined);
    assert.equal(methods()[0], "view");
  });
}

Deno.test("deleteVolume() reads first where somebody has judged the disk before", async () => {
  const { deps, store, clock, methods } = remembering();
  await inTime(clock, deleteUnowned(deps, id, store.disks.get(id)!.comment, context));
  assert.deepEqual(methods(), ["view", "remove"]);
});

Deno.test("deleteVolume() also takes unfinished copies and what an earlier try left, and nothing of others", async () => {
  const { store, remove, methods } = remembering();
  const others = [`/pool/other/${id}.${testCluster}.img`, `${testBase}/${id}.ffffffff.img`];
  for (const path of others) store.putImage(path, 1n);
  store.putImage(`${plainImage(id)}.0123abcd.part`, 1n);
  await remove();
  assert.equal(methods()[0], "removeUnseen");
  assert.deepEqual([...store.allFiles.keys()].toSorted(), others.toSorted());
  assert.equal(store.disks.size, 0);
});

Deno.test("deleteVolume() cancels the copy that is being made for the volume", async () => {
  const { deps, remove, isGone } = remembering();
  let cancelled = false;
  deps.copies.cancel = (key) => {
    cancelled = key === id;
    return Promise.resolve();
  };
  await remove();
  assert.deepEqual([cancelled, isGone()], [true, true]);
});

Deno.test("deleteVolume() without reading removes the image that its command has left", async () => {
  const { store, remove, methods, isGone } = remembering();
  store.mishap("removeUnseen", { runs: "half" });
  await remove();
  assert.deepEqual([methods(), isGone()], [["removeUnseen", "removeImage"], true]);
});

Deno.test("deleteVolume() without reading takes nothing late from the next volume of its name", async () => {
  const { store, deps, remove } = remembering();
  store.mishap("removeUnseen", { late: true });
  await remove();
  store.put(aDisk(aRecord({ epoch: { counter: 0, nonce: "00ff00ff" } })));
  store.runLate();
  assert.ok(store.disks.has(id));
  assert.equal(deps.memory.known.get(id), undefined);
});

Deno.test("deleteVolume() without reading finds what is left in a folder that is no longer allowed", async () => {
  const { store, remove, methods, isGone } = remembering({ settings: { basePaths: ["/pool/new"] } });
  store.mishap("removeUnseen", { runs: "half" });
  store.mishap("removeImage", { runs: false });
  await assert.rejects(remove(), refusal("unavailable", /the image is still there/));
  assert.deepEqual([methods(), isGone()], [["removeUnseen", "removeImage"], false]);
});

/** What happens while it is removed, and why the deletion is not answered OK for what is read back. */
const meanwhile: Readonly<
  Record<string, readonly [(made: ReturnType<typeof remembering>) => Mishap, Parameters<typeof refusal>]>
> = {
  "its pool goes away before its image is removed": [
    ({ store }) => ({ runs: "half", after: () => void (store.pools = []) }),
    ["unavailable", /not mounted/],
  ],
  "the router boots": [({ store }) => ({ after: () => store.reboot() }), ["unavailable", /booted only/]],
  "another thing takes its slot": [
    ({ store }) => ({ after: () => void store.hardware.set(id, "hardware") }),
    ["precondition", /something else/],
  ],
  "a disk takes its slot": [
    ({ store }) => ({ after: () => void store.disks.set(id, { ...aDisk(aRecord()), comment: "theirs" }) }),
    ["precondition", /no record/],
  ],
};

for (const [name, [mishap, refused]] of Object.entries(meanwhile)) {
  Deno.test(`deleteVolume() without reading does not answer OK when ${name}`, async () => {
    const made = remembering();
    made.store.mishap("removeUnseen", mishap(made));
    await assert.rejects(made.remove(), refusal(...refused));
    assert.equal(made.methods()[0], "removeUnseen");
  });
}
