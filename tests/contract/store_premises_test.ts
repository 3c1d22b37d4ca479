// Each premise of a write, true and false: the router must write if it holds, and nothing if it does not. What the store in
// memory takes for true, the router must take for true, and the other way round.
import assert from "node:assert/strict";
import { plainLocation } from "../../src/volume/model/layout.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import { ifSent } from "../../src/volume/ports/not_sent.ts";
import type { NewVolume } from "../../src/volume/ports/store.ts";
import { type StoreBench, storeBenches } from "./_store_benches.ts";

const gib = 1n << 30n;
const imageOf = ({ folder }: StoreBench, id: string) => `${folder}/${id}.0a0b0c0d.img`;
const aDisk = (bench: StoreBench, id: string): NewVolume => ({
  id,
  location: plainLocation(imageOf(bench, id)),
  sizeBytes: gib,
  comment: "one",
});

/** Adds a disk to the router, after a read as every write requires. */
async function withDisk(bench: StoreBench, id = "pvc-1"): Promise<void> {
  const { store, call, folder } = bench;
  await store.view(id, id, call());
  const makeFolder = { path: folder, label: undefined };
  await store.commit({ add: { ...aDisk(bench, id), makeFolder } }, [], call());
}

async function exported({ store, call }: StoreBench): Promise<void> {
  const set = { export: { nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-00ff00ff", port: 4420 } };
  await store.commit({ id: "pvc-1", set }, [{ is: "comment", text: "one" }], call());
}

/** A case: what is on the router besides the disk, and the premise. */
interface Case {
  readonly holds: (bench: StoreBench) => Premise;
  readonly not: (bench: StoreBench) => Premise;
  /** Done before the one that does not hold is tried. */
  readonly before?: (bench: StoreBench) => Promise<void>;
}

const pool = ({ folder }: StoreBench) => folder.split("/")[1]!;

/** Every kind of premise of a disk that is changed: one without a case does not compile. */
type Cases =
  & Readonly<Record<Exclude<Premise["is"], "slot-free">, Case>>
  & Readonly<Record<`${Premise["is"]}, ${string}`, Case>>;

const ofChange: Cases = {
  "comment": {
    holds: () => ({ is: "comment", text: "one" }),
    not: () => ({ is: "comment", text: "on" }),
  },
  "path": {
    holds: (bench) => ({ is: "path", text: imageOf(bench, "pvc-1") }),
    not: (bench) => ({ is: "path", text: imageOf(bench, "pvc-") }),
  },
  "path-holds": {
    holds: () => ({ is: "path-holds", text: "pvc-1.0a0b0c0d" }),
    not: () => ({ is: "path-holds", text: "pvc-1.0a0b0c0e" }),
  },
  "size": {
    holds: () => ({ is: "size", bytes: gib }),
    not: () => ({ is: "size", bytes: gib - 1n }),
  },
  "not-exported": {
    holds: () => ({ is: "not-exported" }),
    not: () => ({ is: "not-exported" }),
    before: exported,
  },
  "exported": {
    holds: () => ({ is: "exported" }),
    not: () => ({ is: "exported" }),
    before: exported,
  },
  "not-mounted": {
    holds: () => ({ is: "not-mounted" }),
    not: () => ({ is: "not-mounted" }),
    before: ({ mount }) => mount("pvc-1"),
  },
  "alone": {
    holds: () => ({ is: "alone", text: "pvc-1." }),
    not: () => ({ is: "alone", text: "pvc-" }),
    before: (bench) => withDisk(bench, "pvc-2"),
  },
  "unused": {
    holds: () => ({ is: "unused", text: "pvc-2." }),
    not: () => ({ is: "unused", text: "pvc-1." }),
  },
  "image-there": {
    holds: (bench) => ({ is: "image-there", path: imageOf(bench, "pvc-1") }),
    not: (bench) => ({ is: "image-there", path: imageOf(bench, "pvc-2") }),
  },
  "image-there, of a size": {
    holds: (bench) => ({ is: "image-there", path: imageOf(bench, "pvc-1"), bytes: gib }),
    not: (bench) => ({ is: "image-there", path: imageOf(bench, "pvc-1"), bytes: 2n * gib }),
  },
  "no-files": {
    holds: () => ({ is: "no-files", text: "/pvc-2." }),
    not: () => ({ is: "no-files", text: "/pvc-1." }),
  },
  "pool-mounted": {
    holds: (bench) => ({ is: "pool-mounted", mountPoint: pool(bench), label: undefined }),
    not: () => ({ is: "pool-mounted", mountPoint: "elsewhere", label: undefined }),
  },
  "pool-mounted, with a label": {
    holds: (bench) => ({ is: "pool-mounted", mountPoint: pool(bench), label: bench.label }),
    not: (bench) => ({ is: "pool-mounted", mountPoint: pool(bench), label: `${bench.label}-2` }),
  },
  "label-free": {
    holds: ({ label }) => ({ is: "label-free", label }),
    not: ({ label }) => ({ is: "label-free", label }),
    before: ({ takeLabel }) => takeLabel("pvc-1"),
  },
  "up-for": {
    holds: () => ({ is: "up-for", ms: 0 }),
    not: () => ({ is: "up-for", ms: Infinity }),
  },
};

/** Changes the disk if a premise holds. Returns its comment then. */
async function change({ store, call }: StoreBench, premise: Premise, comment: string): Promise<string> {
  const context = call();
  await store.view("pvc-1", "pvc-1", context);
  const own = premise.is === "comment" ? [] : [{ is: "comment", text: "one" } as const];
  const outcome = ifSent(await store.commit({ id: "pvc-1", set: { comment } }, [...own, premise], context));
  if (outcome !== undefined) assert.deepEqual([outcome.refusal, outcome.ended], [undefined, true]);
  return (await store.view("pvc-1", "pvc-1", context)).volume!.comment;
}

for (const [where, open] of Object.entries(storeBenches)) {
  for (const [what, { holds, not, before }] of Object.entries(ofChange)) {
    Deno.test(`a store ${where} changes a disk only if this holds: ${what}`, () =>
      open(async (bench) => {
        await withDisk(bench);
        if (not(bench).is !== "exported") await before?.(bench);
        assert.equal(await change(bench, not(bench), "two"), "one");
      }));

    Deno.test(`a store ${where} changes a disk where this holds: ${what}`, () =>
      open(async (bench) => {
        await withDisk(bench);
        if (holds(bench).is === "exported") await before?.(bench);
        assert.equal(await change(bench, holds(bench), "two"), "two");
      }));
  }

  Deno.test(`a store ${where} adds a disk only to a free slot, and changes none without comparing its comment`, () =>
    open(async (bench) => {
      const { store, call } = bench;
      await withDisk(bench);
      const add = async (id: string) => {
        const volume = { ...aDisk(bench, "pvc-3"), id, comment: "two" };
        const outcome = ifSent(await store.commit({ add: volume }, [{ is: "slot-free" }], call()));
        return outcome?.after.volume?.comment;
      };
      assert.equal(await add("pvc-1"), "one");
      assert.equal(await add("pvc-3"), "two");
      await assert.rejects(store.commit({ id: "pvc-1", set: { comment: "x" } }, [], call()), /its comment/);
    }));
}
