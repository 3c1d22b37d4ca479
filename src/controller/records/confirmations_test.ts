// Each fact that a step claims of a volume without a read, broken behind the controller's back: what has to be confirmed keeps
// the step from being taken or from being believed, and what does not matter keeps it from nothing.
import assert from "node:assert/strict";
import { aDisk, aHolder, aRecord, testBase, testCluster } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { breaks } from "../../../tests/fakes/broken_facts.ts";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { OwnedVolume, VolumeRecord } from "../../volume/model/record.ts";
import { filePrefixOf } from "../../volume/model/image_names.ts";
import { locationOf, plainLocation } from "../../volume/model/layout.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import type { ControllerCall } from "../deps.ts";
import {
  confirmations,
  type Confirmed,
  type Fact,
  factOf,
  type StepKind,
  type UnreadKind,
} from "./confirmations.ts";
import { adding } from "./add.ts";
import { VolumeMemory } from "./memory.ts";
import { premisesOf } from "./premises.ts";
import { removing } from "./remove.ts";
import { exported, growth, type Step, withdrawal } from "./steps.ts";
import { takenUnread } from "./take.ts";
import { assumedView, type View } from "./view.ts";

const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };

type Unread = Exclude<UnreadKind, "add" | "remove">;

function volumeOf(record: Partial<VolumeRecord>, exported: boolean): OwnedVolume {
  return getOwned(aDisk(aRecord({ epoch, ...record }), { exported }), "9f86d081", "test");
}

/** Steps of each kind that are taken without a read, by what is remembered. */
const steps = {
  begin: (call) => {
    const volume = volumeOf({}, false);
    const record = { ...volume.record, epoch: { counter: 2, nonce: "4567abcd" }, holders: [aHolder("a")] };
    return exported(call, "begin", volume, { record, port: 4420 }, true);
  },
  grow: (call) => growth(call, volumeOf({}, false), 2n << 30n),
  "grow in use": (call) => growth(call, volumeOf({ holders: [aHolder("a")] }, true), 2n << 30n),
  withdraw: (call) => withdrawal(call, volumeOf({ holders: [aHolder("a")] }, true)),
} as const satisfies Readonly<Record<Unread | "grow in use", (call: ControllerCall) => Step>>;

type Moment = "before" | "after";

/** A claim is broken before the command, or between it and its read-back. */
async function take(what: keyof typeof steps, fact: Fact, when: Moment) {
  const { deps, store } = testController({ unexportGraceMs: 0 });
  const call = { ...deps, context: testContext() };
  const step = steps[what](call);
  store.put(step.volume.stored);
  store.mishap("commit", { [when]: () => breaks[fact](store) });
  const after = await takenUnread(call, "test", step);
  return { after, store, step };
}

const { add: addition, remove: removal, ...changes } = confirmations;

/** What is claimed where nobody has looked. */
function unseen({ pools }: FakeVolumeStore): View {
  return {
    id,
    isAssumed: true,
    volume: undefined,
    foreign: undefined,
    sharers: [],
    files: [],
    pools,
    upMs: Infinity,
  };
}

/** Breaks a claim of a step, and asserts what the table says of that. */
async function assertConfirmed(what: keyof typeof steps, fact: Fact, confirmed: Confirmed, when: Moment) {
  const { after, store, step } = await take(what, fact, when);
  const { comment, exported } = store.disks.get(id)!;
  if (confirmed === "no-matter") {
    assert.equal(after?.stored.comment, comment);
    return assert.notEqual(comment, step.volume.stored.comment);
  }
  assert.equal(after, undefined);
  if (confirmed === "before") assert.equal(comment, step.volume.stored.comment, "nothing was written");
  // Nobody was told of an export that came on.
  if (what === "begin" && confirmed === "after") {
    assert.deepEqual([comment, exported], [step.volume.stored.comment, false]);
  }
}

for (const [kind, cells] of Object.entries({ ...changes, "grow in use": changes.grow })) {
  if (cells === "read-first") continue;
  for (const [fact, confirmed] of Object.entries(cells) as [Fact, Confirmed][]) {
    const moments = confirmed === "no-matter" ? ["before", "after"] as const : [confirmed];
    for (const when of moments) {
      Deno.test(`a step without a read: ${kind}, ${fact}: ${confirmed}, broken ${when} it`, () =>
        assertConfirmed(kind as keyof typeof steps, fact, confirmed, when));
    }
  }
}

for (const [fact, confirmed] of Object.entries(removal) as [Fact, Confirmed][]) {
  Deno.test(`a step without a read: remove, ${fact}: ${confirmed}`, async () => {
    assert.notEqual(confirmed, "after", "an image that is gone cannot be put back");
    const { deps, store } = testController();
    const volume = volumeOf({}, false);
    store.put(volume.stored);
    const location = locationOf(volume.stored.imagePath, store.pools);
    breaks[fact](store);
    const before = store.snapshot();
    const gone = removing({ volume, location }, (left) => left);
    const came = await gone.send({ ...deps, context: testContext() }, "test", unseen(store));
    if (confirmed === "before") return assert.deepEqual(store.snapshot(), before, "nothing was removed");
    assert.ok(typeof came === "object" && "answer" in came);
    assert.deepEqual([came.answer.volume, came.answer.files, store.disks.size], [undefined, [], 0]);
  });
}

/** How something is there of a volume that is to be added. */
const breaksAddition: Readonly<Record<Fact, (store: FakeVolumeStore, disk: StoredVolume) => void>> = {
  ...breaks,
  path: (store, disk) => void store.disks.set(id, { ...disk, imagePath: "/pool/csi/other.img", comment: "" }),
  size: () => {},
  export: () => {},
  uses: () => {},
  sharers: (store, disk) => void store.disks.set("copy", { ...disk, id: "copy" }),
  image: (store, { imagePath }) => store.putFile(imagePath),
};

for (const [fact, confirmed] of Object.entries(addition) as [Fact, Confirmed][]) {
  Deno.test(`a step without a read: add, ${fact}: ${confirmed}`, async () => {
    assert.notEqual(confirmed, "after", "data that a new volume shows cannot be taken back");
    const { deps, store } = testController();
    const { stored } = volumeOf({}, false);
    const { comment, sizeBytes } = stored;
    const location = plainLocation(`${testBase}/${filePrefixOf(id, testCluster)}.img`);
    store.putFile(testBase, 0n, true);
    breaksAddition[fact](store, { ...stored, imagePath: location.path });
    const before = store.snapshot();
    const room = { mountPoint: "pool", bytes: sizeBytes };
    const call = { ...deps, context: testContext() };
    const wanted = { volume: { id, location, sizeBytes, comment }, room };
    const end = await adding(wanted, (added) => Promise.resolve(added)).send(call, "test", unseen(store));
    assert.equal(typeof end === "object", confirmed === "no-matter");
    if (confirmed === "before") assert.deepEqual(store.snapshot(), before, "nothing was added");
  });
}

Deno.test("whatever is to be confirmed before a step is among what the router is asked", () => {
  const disk = aDisk(aRecord());
  const location = plainLocation(disk.imagePath);
  const claim = { disk, filePrefix: "pvc-1.9f86d081", settleMs: 0, location };
  for (const [kind, cells] of Object.entries(confirmations)) {
    if (cells === "read-first") continue;
    const asked = premisesOf(kind as StepKind, claim)!.map((premise) => factOf[premise.is]);
    const before = Object.entries(cells).filter(([, confirmed]) => confirmed === "before");
    assert.deepEqual(before.filter(([fact]) => !asked.includes(fact as Fact)), [], kind);
  }
});

Deno.test("a step without a read is not taken where the volume must be read first", async () => {
  const { deps, store } = testController();
  const call = { ...deps, context: testContext() };
  const step = steps.withdraw(call);
  store.put(step.volume.stored);
  assert.equal(await takenUnread(call, "test", { ...step, kind: "leave" }), undefined);
  assert.equal(store.takeCount(), 0);
});

Deno.test("a volume of which a change may still come is not assumed to be as it is remembered", () => {
  const { deps } = testController();
  const memory = new VolumeMemory(deps.clock, true);
  const call = { ...deps, memory, context: testContext() };
  const { stored } = steps.begin(call).volume;
  memory.wrote(stored);
  assert.equal(assumedView(call, id)?.volume, stored);
  memory.inDoubt.remember(id, stored.comment);
  assert.equal(assumedView(call, id), undefined);
});

Deno.test("a record that the router cuts is put back, and one that is shorter than before is a person's", async () => {
  for (const [left, isPutBack] of [[-2, true], [20, false]] as const) {
    const { deps, store } = testController();
    const call = { ...deps, context: testContext() };
    const step = steps.begin(call);
    store.put(step.volume.stored);
    const cut = () => store.edit(id, { comment: store.disks.get(id)!.comment.slice(0, left) });
    store.mishap("commit", { after: cut });
    const taking = takenUnread(call, "test", step);
    if (isPutBack) await assert.rejects(taking, refusal("precondition", /keeps only/));
    else assert.equal(await taking, undefined);
    assert.equal(store.disks.get(id)!.comment === step.volume.stored.comment, isPutBack);
  }
});
