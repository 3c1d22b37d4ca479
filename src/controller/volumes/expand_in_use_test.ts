import { endings, endsAs } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { VolumeRecord } from "../../volume/model/record.ts";
import { expandVolume } from "./expand.ts";

const epoch = { counter: 3, nonce: "0123abcd" };
const exportNqn = `${testPrefix}:pvc-1:3-0123abcd`;
const holders = [aHolder("a")];
const grown = 2n * gibibyte;

/** A controller on a router that shows a new size after a toggle, with the volume `pvc-1` in use. */
function controller(
  record: Partial<VolumeRecord> = {},
  disk: Partial<StoredVolume> = {},
  growsByToggle = true,
  context = testContext(),
) {
  const made = testController({ growth: "after-toggle", growsByToggle });
  const inUse = { epoch, holders, layered: true, ...record } as const;
  made.store.put(aDisk(aRecord(inUse), { exported: true, exportNqn, exportPort: 4420, ...disk }));
  const expand = () => expandVolume(made.deps, "pvc-1", { requiredBytes: grown, limitBytes: 0n }, context);
  const { disk: shown, ...calls } = volumeCalls(made);
  return { ...made, ...calls, expand, shown };
}

Deno.test("expandVolume() toggles the export of a volume in use where every node has the device layer", async () => {
  const { store, expand, shown, record } = controller();
  assert.equal(await expand(), grown);
  assert.deepEqual(store.bounces, ["pvc-1"]);
  const { sizeBytes, exported, exportNqn: nqn, exportPort } = shown();
  assert.deepEqual([sizeBytes, exported, nqn, exportPort], [grown, true, exportNqn, 4420]);
  assert.deepEqual({ ...record(), growths: undefined }, {
    ...aRecord({ epoch, holders, layered: true }),
    growths: undefined,
  });
  assert.deepEqual(store.calls.map((call) => call.method), ["createView", "change"]);
});

Deno.test("expandVolume() keeps the router from mounting a file system while the export is off", async () => {
  const { store, expand, shown } = controller({}, { mayBeMounted: true });
  assert.equal(await expand(), grown);
  assert.deepEqual([store.bounces, shown().mayBeMounted], [["pvc-1"], undefined]);
});

const refused: [string, Partial<VolumeRecord>, Partial<StoredVolume>, boolean?][] = [
  ["an epoch of which nothing is known", { layered: undefined }, {}],
  ["no holder", { holders: [] }, {}],
  ["an export under another name", {}, { exportNqn: `${testPrefix}:pvc-1:2-0123abcd` }],
  ["a disk that the router itself uses", {}, { routerUses: ["its file system is mounted"] }],
  ["a router of which it is not known what a toggle does", {}, {}, false],
];
for (const [what, record, disk, growsByToggle] of refused) {
  Deno.test(`expandVolume() toggles no export of ${what}`, async () => {
    const { store, expand, shown } = controller(record, disk, growsByToggle);
    const before = shown();
    await assert.rejects(expand(), refusal("precondition", /only while it is not exported/));
    assert.deepEqual(shown(), before);
    assert.deepEqual(store.bounces, []);
  });
}

Deno.test("expandVolume() of a volume in use gets there whatever becomes of its command", async () => {
  for (const ending of endings) {
    const { store, expand, shown } = controller();
    const [, mishap] = ending;
    store.mishap("change", mishap);
    await endsAs(ending, expand());
    assert.equal(await expand(), grown);
    assert.deepEqual([shown().sizeBytes, shown().exported, shown().exportNqn], [grown, true, exportNqn]);
  }
});

Deno.test("expandVolume() turns the export on again when the router refuses the size behind the toggle's off", async () => {
  const { store, expand, shown, record } = controller();
  store.mishap("change", {
    refusal: "failure: not enough space",
    after: () => store.edit("pvc-1", { exported: false }),
  });
  await assert.rejects(expand(), refusal("unavailable", /not enough space/));
  const { sizeBytes, exported, exportNqn: nqn } = shown();
  assert.deepEqual([sizeBytes, exported, nqn], [gibibyte, true, exportNqn]);
  assert.deepEqual(record().holders, holders);
});

/** The router refuses the size behind the "off", and meanwhile the call ends. */
async function endedBehindTheOff(end: VolumeError): Promise<ReturnType<typeof controller>> {
  const ended = new AbortController();
  const made = controller({}, {}, true, testContext({ signal: ended.signal }));
  const { store, expand } = made;
  store.mishap("change", {
    refusal: "failure: not enough space",
    after: () => {
      store.edit("pvc-1", { exported: false });
      store.calls.length = 0;
      ended.abort(end);
    },
  });
  await assert.rejects(expand());
  return made;
}

Deno.test("expandVolume() turns the export on again also when its caller has gone meanwhile", async () => {
  for (const kind of ["deadline", "cancelled"] as const) {
    const { shown } = await endedBehindTheOff(new VolumeError(kind, "Cannot finish in time"));
    assert.deepEqual([shown().exported, shown().exportNqn], [true, exportNqn], kind);
  }
});

Deno.test("expandVolume() sends nothing any more once the lead is lost", async () => {
  // As `Lead.during()` ends a call.
  const lost = new VolumeError("unavailable", "Cannot serve the call because another controller leads");
  const { store, shown } = await endedBehindTheOff(lost);
  assert.deepEqual([store.calls, shown().exported], [[], false]);
});

Deno.test("expandVolume() says why an export stays off, and gives the reason of its own failure", async () => {
  const { store, expand, shown, notes } = controller();
  store.mishap("change", {
    refusal: "failure: not enough space",
    after: () => store.edit("pvc-1", { exported: false, routerUses: ["its file system is mounted"] }),
  });
  await assert.rejects(expand(), refusal("unavailable", /not enough space/));
  assert.equal(shown().exported, false);
  assert.deepEqual(notes, ["an export could not be turned on again after a failed expansion"]);
});

/** The router has run the first statement, and the session was cut before the second, for longer than the call tries. */
function cutInBetween({ store, shown }: ReturnType<typeof controller>): void {
  const { comment } = shown();
  store.mishap("view", { unreadable: true });
  store.mishap("change", {
    after: () => store.edit("pvc-1", { exported: false, comment }),
    unreadable: true,
  });
}

Deno.test("expandVolume() that was cut off while the export was off turns it on again under the same name", async () => {
  const cut = controller();
  cutInBetween(cut);
  await assert.rejects(cut.expand(), refusal("unavailable"));
  assert.equal(cut.shown().exported, false);
  assert.equal(await cut.expand(), grown);
  const { exported, exportNqn: nqn, exportPort } = cut.shown();
  assert.deepEqual([exported, nqn, exportPort], [true, exportNqn, 4420]);
  assert.deepEqual(cut.record().holders, holders);
});

Deno.test("expandVolume() turns an export on again also where the size was not taken", async () => {
  const { expand, shown } = controller({}, { exported: false });
  assert.equal(await expand(), grown);
  assert.deepEqual([shown().exported, shown().exportNqn], [true, exportNqn]);
});

Deno.test("expandVolume() leaves an export off that nobody holds, or that the router itself uses", async () => {
  const left = controller();
  cutInBetween(left);
  await assert.rejects(left.expand(), refusal("unavailable"));
  await left.unpublish();
  assert.equal(await left.expand(), grown);
  assert.equal(left.shown().exported, false);
  const used = controller();
  cutInBetween(used);
  await assert.rejects(used.expand(), refusal("unavailable"));
  used.store.edit("pvc-1", { routerUses: ["its file system is mounted"] });
  await assert.rejects(used.expand(), refusal("precondition", /mounted/));
  assert.equal(used.shown().exported, false);
});

Deno.test("an expansion that the router runs only after the volume was withdrawn turns nothing on", async () => {
  const { store, unpublish, expand, shown, record } = controller();
  store.mishap("change", { late: true });
  await assert.rejects(expand());
  await unpublish();
  store.runLate();
  assert.equal(shown().exported, false);
  assert.deepEqual(record().holders, []);
});
