// Each fact that a step claims of a volume without a read, broken behind the controller's back: what has to be confirmed keeps
// the step from being taken or from being believed, and what does not matter keeps it from nothing.
import assert from "node:assert/strict";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import type { ControllerCall } from "../deps.ts";
import { confirmations, type Confirmed, type Fact, type StepKind } from "./confirmations.ts";
import { type Step, withdrawal } from "./steps.ts";
import { takenUnread } from "./take.ts";

const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };

type Unread = Exclude<StepKind, "leave">;

/** A step of each kind that is taken without a read, by what is remembered. */
const steps: Readonly<Record<Unread, (call: ControllerCall) => Step>> = {
  withdraw: (call) => {
    const disk = aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { exported: true });
    return withdrawal(call, getOwned(disk, call.settings.cluster, "unpublish"));
  },
};

/** How a person, or a router that has forgotten its last seconds, makes a claim wrong. */
const breaks: Readonly<Record<Fact, (store: FakeVolumeStore) => void>> = {
  path: (store) => store.edit(id, { imagePath: "/pool/csi/other.img" }),
  size: (store) => store.edit(id, { sizeBytes: 5n << 30n }),
  export: (store) => store.edit(id, { exported: store.disks.get(id)!.exported }),
  uses: (store) => store.edit(id, { routerUses: ["its file system is mounted"] }),
  sharers: (store) => void store.disks.set("copy", { ...store.disks.get(id)!, id: "copy", comment: "" }),
  image: (store) => void store.allFiles.delete(store.disks.get(id)!.imagePath),
  pools: (store) => void (store.pools = []),
  settled: (store) => store.reboot(),
};

/** A claim is broken before the command, or between it and its read-back. */
async function take(kind: Unread, fact: Fact, when: "before" | "after") {
  const { deps, store } = testController({ unexportGraceMs: 0 });
  const call = { ...deps, context: testContext() };
  const step = steps[kind](call);
  store.put(step.volume.stored);
  const turnedOn = () => store.edit(id, { exported: true });
  const breakIt = when === "after" && fact === "export" ? turnedOn : () => breaks[fact](store);
  store.mishap("commit", { [when]: breakIt });
  const after = await takenUnread(call, "test", step);
  return { after, store, step };
}

for (const [kind, cells] of Object.entries(confirmations)) {
  if (cells === "read-first") continue;
  for (const [fact, confirmed] of Object.entries(cells) as [Fact, Confirmed][]) {
    const name = `a step without a read: ${kind}, ${fact}: ${confirmed}`;
    Deno.test(name, async () => {
      const { after, store, step } = await take(
        kind as Unread,
        fact,
        confirmed === "after" ? "after" : "before",
      );
      if (confirmed === "no-matter") {
        assert.equal(after?.stored.comment, store.disks.get(id)!.comment);
        return assert.notEqual(after?.stored.comment, step.volume.stored.comment);
      }
      assert.equal(after, undefined);
      const { comment } = store.disks.get(id)!;
      if (confirmed === "before") assert.equal(comment, step.volume.stored.comment, "nothing was written");
    });
  }
}

Deno.test("a step without a read is not taken where the comment would grow, nor where it must be read first", async () => {
  const { deps, store } = testController();
  const call = { ...deps, context: testContext() };
  const step = steps.withdraw(call);
  store.put(step.volume.stored);
  const longer = {
    ...step,
    record: { ...step.record, holders: [aHolder("a-node-of-a-longer-name"), aHolder("b")] },
  };
  assert.equal(await takenUnread(call, "test", longer), undefined);
  assert.equal(await takenUnread(call, "test", { ...step, kind: "leave" }), undefined);
  assert.equal(store.takeCount(), 0);
});
