// Growing by what the controller remembers of its last change, as far as that differs from other calls (unread_calls_test).
import assert from "node:assert/strict";
import { gibibyte, rememberingController, testContext } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, testBase } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { ControllerSettings } from "../deps.ts";
import { expandVolume } from "./expand.ts";
import { maxAgeMs } from "./promised_room.ts";

const context = testContext();
const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };
const held = aDisk(aRecord({ epoch, holders: [aHolder("a")] }));

interface Options {
  readonly settings?: Partial<ControllerSettings>;
  readonly disk?: ReturnType<typeof aDisk>;
}

/** A controller that has changed a volume of 1 GiB last, and knows how full its pool is. */
async function remembering({ settings = {}, disk = held }: Options = {}) {
  const made = rememberingController(disk, settings);
  const { deps, store } = made;
  const learn = () => deps.promised.learnFrom(() => store.createView(undefined, context));
  await learn();
  store.takeCount();
  const size = () => store.disks.get(id)!.sizeBytes / gibibyte;
  return { ...made, ...volumeCalls(made), learn, size };
}

Deno.test("expandVolume() takes one command for a volume that this controller has changed last", async () => {
  const { store, expand, size, methods } = await remembering();
  const { sizeBytes: _, comment, ...rest } = held;
  assert.equal(await expand(2n), 2n * gibibyte);
  assert.equal(await expand(3n), 3n * gibibyte);
  assert.deepEqual([methods(), size()], [["growUnseen", "growUnseen"], 3n]);
  const { sizeBytes: __, comment: after, ...left } = store.disks.get(id)!;
  assert.deepEqual(left, rest, "all else is as it was");
  assert.match(after, / g=2 h=a@/);
  assert.notEqual(after, comment);
  assert.equal(await expand(3n), 3n * gibibyte);
  assert.deepEqual(methods(), ["view"], "that it is large enough only a read tells");
});

Deno.test("expandVolume() cuts nothing of an image that became larger than the disk that is remembered", async () => {
  const { store, expand, size, methods } = await remembering();
  store.putFile(held.imagePath, 4n * gibibyte);
  assert.equal(await expand(2n), 4n * gibibyte);
  assert.deepEqual([methods(), size(), store.violations], [["growUnseen", "view", "change"], 4n, []]);
});

Deno.test("a disk that any call has read as smaller than its image is not remembered", async () => {
  const { store, deps, expand, methods } = await remembering();
  deps.memory.known.forgetAll();
  await deps.promised.learnFrom(() => store.createView(undefined, context));
  store.putFile(held.imagePath, 4n * gibibyte);
  deps.memory.inDoubt.remember(id, held.comment);
  assert.equal(await expand(1n), gibibyte, "and its record is written again");
  assert.equal(deps.memory.known.get(id), undefined);
  methods();
  assert.equal(await expand(2n), 4n * gibibyte);
  assert.deepEqual([methods(), store.violations], [["view", "change"], []]);
});

/** What keeps a volume that is remembered from being grown unread. */
const readFirst: Readonly<Record<string, Options>> = {
  "a newer version wrote its record": { disk: aDisk(aRecord({ newerFields: ["z=1"] })) },
  "the router grows only what is not exported": { settings: { growth: "after-toggle" } },
  "an export may have been left off": {
    settings: { growth: "after-toggle" },
    disk: { ...held, exported: false },
  },
  "it was imported": {
    disk: aDisk(aRecord({ source: importedSource(id, `${testBase}/theirs.img`) }), {
      imagePath: `${testBase}/theirs.img`,
    }),
  },
  "it is on another file": { disk: aDisk(aRecord(), { imagePath: `${testBase}/other.img` }) },
};

for (const [name, options] of Object.entries(readFirst)) {
  Deno.test(`expandVolume() reads first where ${name}`, async () => {
    const { expand, methods } = await remembering(options);
    await expand().catch(() => undefined);
    assert.equal(methods()[0], "view");
  });
}

Deno.test("expandVolume() takes one command for what is not exported, where a router grows nothing else", async () => {
  const { expand, size, methods } = await remembering({
    settings: { growth: "after-toggle" },
    disk: aDisk(aRecord()),
  });
  await expand();
  assert.deepEqual([methods(), size()], [["growUnseen"], 2n]);
});

Deno.test("expandVolume() reads everything where room is scarce, or was summed up too long ago", async () => {
  const old = await remembering();
  await old.clock.advance(maxAgeMs + 1);
  await old.expand();
  assert.deepEqual(old.methods(), ["createView", "change"]);
  const scarce = await remembering();
  await scarce.expand(95n);
  assert.deepEqual(scarce.methods(), ["createView", "change"]);
  const full = await remembering();
  full.store.pools = full.store.pools.map((pool) => ({ ...pool, freeBytes: gibibyte - 1n }));
  await full.clock.advance(1);
  await full.learn();
  full.methods();
  await assert.rejects(full.expand(), refusal("out-of-range"));
  assert.deepEqual([full.methods(), full.size()], [["view", "createView"], 1n]);
});

Deno.test("expandVolume() counts what it has promised", async () => {
  const { deps, expand, store } = await remembering();
  const [pool] = store.pools;
  await expand(21n);
  assert.equal(deps.promised.promisedWithin(pool!), 21n * gibibyte);
  store.mishap("growUnseen", { runs: false });
  await expand(31n);
  assert.equal(deps.promised.promisedWithin(pool!), 41n * gibibyte, "also what may still come");
});

Deno.test("expandVolume() of several volumes at once overlooks none of them", async () => {
  const { deps, store, expand, learn, methods } = await remembering();
  const other = { ...held, id: "pvc-2", imagePath: held.imagePath.replace(id, "pvc-2") };
  store.put(other);
  deps.memory.known.remember(other);
  await learn();
  methods();
  const range = { requiredBytes: 46n * gibibyte, limitBytes: 0n };
  await Promise.all([expand(46n), expandVolume(deps, other.id, range, context)]);
  assert.deepEqual(methods().toSorted(), ["change", "createView", "growUnseen"]);
});

Deno.test("expandVolume() does not answer OK when the disk did not grow, or grew to another size", async () => {
  const sizes = [[1n, "precondition", /did not grow/], [2n, "busy", /another size/]] as const;
  for (const [gib, kind, text] of sizes) {
    const { store, expand, methods } = await remembering();
    store.mishap("growUnseen", { after: () => store.edit(id, { sizeBytes: gib * gibibyte }) });
    await assert.rejects(expand(3n), refusal(kind, text));
    assert.deepEqual(methods(), ["growUnseen"]);
  }
});

Deno.test("expandVolume() leaves the grace of the last withdrawal as old as it is", async () => {
  const disk = aDisk(aRecord({ epoch, withdrawnAtSeconds: 1_700_000_000 }));
  const { deps, store, clock, expand, methods } = await remembering({ disk });
  deps.memory.off.confirm(id, disk.comment);
  await clock.advance(7_000);
  await expand();
  assert.deepEqual(methods(), ["growUnseen"]);
  assert.equal(deps.memory.off.ageMs(store.disks.get(id)!), 7_000);
});
