// Calls that change a volume without a read, by what the controller remembers: whatever has happened behind its back, they end
// as the same calls do after a read.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { breaks } from "../../../tests/fakes/broken_facts.ts";
import {
  aPublish,
  gibibyte,
  inTime,
  rememberingController,
  testContext,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import type { Mishap, StoreMethod } from "../../../tests/fakes/mishap.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { nodeIdsOf, parseComment } from "../../volume/model/record.ts";
import { publishVolume } from "../attachments/publish.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";
import type { ControllerDeps } from "../deps.ts";
import { deleteVolume } from "../volumes/delete.ts";
import { expandVolume } from "../volumes/expand.ts";

const context = testContext();
const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };
const unheld = aDisk(aRecord({ epoch }));
const held = aDisk(aRecord({ epoch, holders: [aHolder("a")] }), {
  exported: true,
  exportNqn: `nqn.2000-02.com.mikrotik:${id}:1-0123abcd`,
});

/** A call, and the command in which it is done without a read, and after one. */
interface UnreadCall {
  /** The volume as this controller has written it last. */
  readonly disk: StoredVolume;
  readonly call: (deps: ControllerDeps) => Promise<unknown>;
  readonly unread: StoreMethod;
  readonly read: StoreMethod;
  readonly isDone: (store: FakeVolumeStore) => boolean;
}

const calls: Readonly<Record<"publish" | "unpublish" | "expand" | "delete", UnreadCall>> = {
  publish: {
    disk: unheld,
    call: (deps) => publishVolume(deps, id, aPublish("b"), testParameters, context),
    unread: "exportUnseen",
    read: "change",
    isDone: (store) => store.disks.get(id)!.exported && holders(store) === "b",
  },
  unpublish: {
    disk: held,
    call: (deps) => unpublishVolume(deps, id, "a", context),
    unread: "change",
    read: "change",
    isDone: (store) => !store.disks.get(id)!.exported && holders(store) === "",
  },
  expand: {
    disk: held,
    call: (deps) => expandVolume(deps, id, { requiredBytes: 2n * gibibyte, limitBytes: 0n }, context),
    unread: "growUnseen",
    read: "change",
    isDone: (store) => store.disks.get(id)!.sizeBytes === 2n * gibibyte && store.disks.get(id)!.exported,
  },
  delete: {
    disk: unheld,
    call: (deps) => deleteVolume(deps, id, context),
    unread: "removeUnseen",
    read: "remove",
    isDone: (store) => !store.disks.has(id) && !store.allFiles.has(unheld.imagePath),
  },
};

function holders(store: FakeVolumeStore): string {
  const parsed = parseComment(store.disks.get(id)!.comment);
  return parsed.state === "record" ? nodeIdsOf(parsed.comment.record.holders).join() : parsed.state;
}

/** A controller that has written the volume last, alone on its router or not, and knows how full its pool is. */
async function scene({ disk, call }: UnreadCall, alone = true) {
  const made = rememberingController(disk, {}, alone);
  const { deps, store, clock } = made;
  await deps.promised.learnFrom(() => store.createView(undefined, context));
  store.takeCount();
  const run = () => inTime(clock, call(deps));
  return { ...made, run };
}

/** What a call came to, but for the epoch: a name that was exported for a moment is given to nobody. */
async function outcome({ run, store }: Awaited<ReturnType<typeof scene>>) {
  const answer = await run().then(inspect, String);
  const disks = [...store.disks.values()].map(({ id, imagePath, sizeBytes, exported, comment }) => {
    const parsed = parseComment(comment);
    const record = parsed.state === "record" ? parsed.comment.record : undefined;
    const { before, after } = parsed.state === "record" ? parsed.comment : { before: comment, after: "" };
    return [
      id,
      imagePath,
      sizeBytes,
      exported,
      before,
      after,
      record?.cluster,
      nodeIdsOf(record?.holders ?? []),
    ];
  });
  return {
    answer: answer.replaceAll(/\b\d+-[0-9a-f]{8}\b/g, "epoch"),
    disks,
    files: [...store.allFiles.keys()].toSorted(),
    violations: store.violations,
  };
}

for (const [name, unread] of Object.entries(calls)) {
  Deno.test(`${name} of a volume that this controller has changed last takes one command, and comes to what it does after a read`, async () => {
    const [remembered, others] = [await scene(unread), await scene(unread, false)];
    assert.deepEqual(await outcome(remembered), await outcome(others));
    assert.ok(unread.isDone(remembered.store));
    assert.deepEqual([remembered.methods(), others.methods()], [[unread.unread], ["view", unread.read]]);
  });

  Deno.test(`${name} reads first where nothing certain is remembered`, async () => {
    const states: Readonly<Record<string, (deps: ControllerDeps) => void>> = {
      forgotten: ({ memory }) => memory.known.forgetAll(),
      "in doubt": ({ memory }) => memory.inDoubt.remember(id, unread.disk.comment),
      "another controller has led": ({ memory }) => memory.inDoubt.suspectOthers(),
    };
    for (const [state, make] of Object.entries(states)) {
      const { deps, run, methods, store } = await scene(unread);
      make(deps);
      await run();
      assert.deepEqual(methods().slice(0, 2), ["view", unread.read], state);
      assert.ok(unread.isDone(store));
    }
  });
}

/** What somebody does behind the controller's back: to each fact, and to the record. */
const behindItsBack: Readonly<Record<string, (store: FakeVolumeStore) => void>> = {
  ...breaks,
  "a note is put before the record": (store) =>
    store.edit(id, { comment: `note ${store.disks.get(id)!.comment}` }),
  "another node has it": (store) =>
    store.edit(id, aDisk(aRecord({ epoch: { counter: 9, nonce: "0123abcd" }, holders: [aHolder("c")] }))),
  "it is another cluster's": (store) => store.edit(id, aDisk(aRecord({ cluster: "ffffffff" }))),
  "the record is damaged": (store) => store.edit(id, { comment: store.disks.get(id)!.comment.slice(0, 20) }),
  "the record is gone": (store) => store.edit(id, { comment: "" }),
  "it is not shown": (store) => void store.hidden.add(id),
  "it is not shown by a router that has just booted": (store) => {
    store.hidden.add(id);
    store.reboot();
  },
  "it is gone with its image": (store) => {
    store.allFiles.delete(store.disks.get(id)!.imagePath);
    store.disks.delete(id);
  },
  "another thing is in its slot": (store) => {
    store.disks.delete(id);
    store.hardware.set(id, "hardware");
  },
  "its pool is back without its image": (store) => {
    store.reboot();
    store.allFiles.delete(store.disks.get(id)!.imagePath);
  },
};

for (const [name, unread] of Object.entries(calls)) {
  for (const [what, edit] of Object.entries(behindItsBack)) {
    Deno.test(`${name} without a read comes to what it does after one, behind its back: ${what}`, async () => {
      const [remembered, others] = [await scene(unread), await scene(unread, false)];
      for (const { store } of [remembered, others]) edit(store);
      assert.deepEqual(await outcome(remembered), await outcome(others));
      const [first] = remembered.methods();
      const { upMs } = await remembered.store.state(context);
      // A removal is not sent to a router that is not known to be up for long enough.
      const isSent = name !== "delete" || upMs >= remembered.deps.settings.settleMs;
      assert.equal(first, isSent ? unread.unread : "view");
    });
  }
}

/** How the command ends, and whether the call is done by it alone. */
const mishaps: Readonly<Record<string, readonly [mishap: Mishap, isAlone: boolean]>> = {
  "it ran, and its end is unknown": [{ runs: true, refusal: "interrupted" }, true],
  "it did not run": [{ runs: false }, false],
  "it was refused": [{ refusal: "failure: no" }, false],
  "it runs late": [{ late: true }, false],
};

for (const [name, unread] of Object.entries(calls)) {
  for (const [what, [mishap, isAlone]] of Object.entries(mishaps)) {
    Deno.test(`${name} without a read answers OK only for what is read back, and nothing comes late: ${what}`, async () => {
      const { store, run, methods } = await scene(unread);
      store.mishap(unread.unread, mishap);
      await run();
      const all = methods();
      assert.deepEqual([all[0], all.at(-1)], [unread.unread, isAlone ? unread.unread : unread.read]);
      assert.ok(unread.isDone(store));
      const before = store.snapshot();
      store.runLate();
      assert.deepEqual([store.snapshot(), store.violations], [before, []]);
    });
  }

  Deno.test(`${name} whose end cannot be read fails, and reads when it is called again`, async () => {
    for (const runs of [true, false]) {
      const { store, run, methods } = await scene(unread);
      store.mishap(unread.unread, { runs, unreadable: true });
      await assert.rejects(run(), refusal("unavailable"));
      assert.deepEqual(methods(), [unread.unread]);
      await run();
      assert.equal(methods()[0], "view");
      assert.ok(unread.isDone(store));
    }
  });
}
