// Publishing by what the controller remembers of its last change: as safe as after reading, whatever came in between.
import assert from "node:assert/strict";
import {
  aPublish,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { nodeIdsOf, parseComment } from "../../volume/model/record.ts";
import { VolumeMemory } from "../records/memory.ts";
import { expandVolume } from "../volumes/expand.ts";
import { publishVolume } from "./publish.ts";
import { unpublishVolume } from "./unpublish.ts";

const context = testContext();
const id = "pvc-1";

/** A controller, alone on its router or not, that has made the volume last and published it to nobody. */
function remembering({ alone = true, unexportGraceMs = 0, ...settings } = {}) {
  const made = testController({ unexportGraceMs, ...settings });
  const { store, clock } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(made.deps.clock, alone) };
  store.put(aDisk(aRecord()));
  deps.memory.known.remember(store.disks.get(id)!);
  const publish = (nodeId = "a") =>
    inTime(clock, publishVolume(deps, id, aPublish(nodeId), testParameters, context));
  const unpublish = (nodeId = "a") => inTime(clock, unpublishVolume(deps, id, nodeId, context));
  const disk = () => store.disks.get(id)!;
  const record = () => {
    const parsed = parseComment(disk().comment);
    return parsed.state === "record" ? parsed.comment.record : assert.fail(parsed.state);
  };
  const methods = () => store.calls.splice(0).map(({ method }) => method);
  const isOn = (nodeId = "a") =>
    disk().exported && nodeIdsOf(record().holders).join() === nodeId && store.violations.length === 0;
  return { ...made, deps, publish, unpublish, disk, record, methods, isOn };
}

Deno.test("publishVolume() takes one command for a volume that this controller has changed last", async () => {
  const { publish, unpublish, methods, isOn, disk, record } = remembering();
  const answered = await publish();
  assert.deepEqual(methods(), ["exportUnseen"]);
  assert.ok(isOn());
  assert.equal(answered.nqn, disk().exportNqn);
  assert.equal(answered.size, String(disk().sizeBytes));
  assert.equal(record().epoch!.counter, 1);
  await unpublish();
  const again = await publish("b");
  assert.deepEqual(methods(), ["change", "exportUnseen"]);
  assert.ok(isOn("b"));
  assert.notEqual(again.nqn, answered.nqn);
});

Deno.test("publishVolume() reads first where the router forgot a growth before the volume was unpublished", async () => {
  const { store, deps, publish, unpublish, disk, methods } = remembering();
  await publish();
  const { comment, sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { comment, sizeBytes });
  await unpublish();
  methods();
  assert.equal((await publish("b")).size, String(grown));
  assert.deepEqual(methods(), ["view", "change", "change"]);
  await unpublish("b");
  await publish("b");
  assert.deepEqual(
    methods(),
    ["view", "change", "exportUnseen"],
    "as before, once a read has shown the image to fit",
  );
});

Deno.test("publishVolume() reads first where the router has forgotten a growth, and kept the record", async () => {
  const { store, deps, publish, disk, methods } = remembering();
  const { sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { sizeBytes });
  methods();
  assert.equal((await publish()).size, String(grown));
  assert.deepEqual(methods(), ["exportUnseen", "change", "view", "change", "change", "change"]);
});

Deno.test("publishVolume() reads first where the router forgot a growth in use, and kept the record", async () => {
  const { store, deps, publish, unpublish, disk } = remembering();
  await publish();
  const { sizeBytes } = disk();
  const grown = 2n * sizeBytes;
  await expandVolume(deps, id, { requiredBytes: grown, limitBytes: 0n }, context);
  store.edit(id, { sizeBytes });
  await unpublish();
  assert.equal((await publish("b")).size, String(grown));
});

Deno.test("publishVolume() answers without a read what it answers after one", async () => {
  const answers = await Promise.all([true, false].map((alone) => remembering({ alone }).publish()));
  assert.deepEqual(answers[0], answers[1]);
});

Deno.test("publishVolume() reads first where nothing certain is remembered", async () => {
  const others = remembering({ alone: false });
  await others.publish();
  assert.deepEqual(others.methods(), ["view", "change"]);
  const ledBefore = remembering();
  ledBefore.deps.memory.known.forgetAll();
  await ledBefore.publish();
  assert.deepEqual(ledBefore.methods(), ["view", "change"]);
  const inDoubt = remembering();
  inDoubt.deps.memory.inDoubt.remember(id, inDoubt.disk().comment);
  await inDoubt.publish();
  assert.deepEqual(inDoubt.methods(), ["view", "change"]);
  const takenOver = remembering();
  takenOver.deps.memory.inDoubt.suspectOthers();
  await takenOver.publish();
  assert.deepEqual(takenOver.methods(), ["view", "change", "view"]);
  const held = remembering();
  await held.publish();
  held.methods();
  await held.publish();
  assert.deepEqual(held.methods(), ["view"], "held already");
  await assert.rejects(held.publish("b"), refusal("published-elsewhere"));
  assert.ok(held.isOn());
});

type Remembering = ReturnType<typeof remembering>;

/** What somebody does behind the controller's back, and what the publish then is refused with, if it is. */
const behindItsBack: Readonly<
  Record<string, readonly [edit: (made: Remembering) => void, refused?: Parameters<typeof refusal>]>
> = {
  "a note is put into the comment": [
    ({ store, disk }) => store.edit(id, { comment: `note ${disk().comment}` }),
  ],
  "another node has it": [
    ({ store }) => {
      const epoch = { counter: 9, nonce: "0123abcd" };
      store.edit(id, { ...aDisk(aRecord({ epoch, holders: [aHolder("b")] })), exported: true });
    },
    ["published-elsewhere"],
  ],
  "the record is damaged": [
    ({ store, disk }) => store.edit(id, { comment: disk().comment.slice(0, 20) }),
    ["precondition", /damaged/],
  ],
  "the router has mounted it": [
    ({ store }) => store.edit(id, { routerUses: ["its file system is mounted"] }),
    ["precondition", /mounted/],
  ],
  "the router serves it otherwise": [
    ({ store }) => store.edit(id, { routerUses: ["it is swap space"] }),
    ["precondition", /swap space/],
  ],
  "another disk is on its image": [
    ({ store, disk }) => store.disks.set("copy", { ...disk(), id: "copy", comment: "" }),
    ["precondition", /another disk/],
  ],
  "its pool is gone": [({ store }) => void (store.pools = []), ["unavailable"]],
  "its disk is on another file": [
    ({ store, disk }) => store.edit(id, { imagePath: disk().imagePath.replace(/[^/]*$/, "other.img") }),
    ["precondition", /another name/],
  ],
  "its disk is on another file, and another disk on its image": [
    ({ store, disk }) => {
      store.disks.set("copy", { ...disk(), id: "copy", comment: "" });
      store.edit(id, { imagePath: disk().imagePath.replace(/[^/]*$/, "other.img") });
    },
    ["precondition", /another disk/],
  ],
  "its pool is back without its image": [
    ({ store, disk }) => {
      store.reboot();
      store.allFiles.delete(disk().imagePath);
    },
    ["unavailable", /does not show its image/],
  ],
  "it is not shown": [({ store }) => void store.hidden.add(id), ["unavailable"]],
  "it is another thing": [
    ({ store }) => {
      store.disks.delete(id);
      store.hardware.set(id, "hardware");
    },
    ["precondition", /something else/],
  ],
};

for (const [name, [edit, refused]] of Object.entries(behindItsBack)) {
  Deno.test(`publishVolume() reads again, and decides by that, when ${name}`, async () => {
    const made = remembering();
    edit(made);
    const before = made.store.snapshot();
    const { exportNqn, exportPort } = made.store.disks.get(id) ?? {};
    if (refused === undefined) {
      await made.publish();
      assert.deepEqual(made.methods(), ["exportUnseen", "view", "change"]);
      assert.ok(made.isOn());
      return;
    }
    await assert.rejects(made.publish(), refusal(...refused));
    assert.equal(made.methods()[0], "exportUnseen");
    // The name of an export that is off again is nobody's.
    if (made.store.disks.has(id)) made.store.edit(id, { exportNqn, exportPort });
    assert.deepEqual(made.store.snapshot(), before, "as it was");
    assert.deepEqual(made.store.violations, []);
  });
}

Deno.test("publishVolume() withdraws first what somebody has exported behind its back", async () => {
  const { store, publish, methods, isOn, disk } = remembering();
  store.edit(id, { exported: true, exportNqn: "nqn.2014-08.org.example:by-hand" });
  await publish();
  assert.deepEqual(methods(), ["exportUnseen", "view", "change", "change"]);
  assert.ok(isOn());
  assert.doesNotMatch(disk().exportNqn, /by-hand/);
});

Deno.test("publishVolume() tells the router again to mount nothing", async () => {
  const { store, publish, methods, isOn, disk } = remembering();
  store.edit(id, { mayBeMounted: true });
  await publish();
  assert.deepEqual(methods(), ["exportUnseen"]);
  assert.ok(isOn());
  assert.equal(disk().mayBeMounted, undefined);
});

Deno.test("publishVolume() puts back a record that the router cuts", async () => {
  const { store, publish, methods, disk } = remembering();
  const { comment } = disk();
  store.mishap("exportUnseen", { after: () => store.edit(id, { comment: disk().comment.slice(0, -9) }) });
  await assert.rejects(publish(), refusal("precondition", /keeps only/));
  assert.deepEqual(methods(), ["exportUnseen", "change"]);
  assert.deepEqual([disk().comment, disk().exported], [comment, false]);
});

Deno.test("publishVolume() waits for the grace of the last withdrawal as after a read", async () => {
  const { publish, unpublish, methods, clock, isOn } = remembering({ unexportGraceMs: 30_000 });
  await publish();
  await unpublish();
  methods();
  const fromMs = clock.now();
  await publish("b");
  assert.deepEqual([methods(), clock.now() - fromMs >= 29_000], [["view", "view", "change"], true]);
  await unpublish("b");
  await clock.advance(30_000);
  methods();
  await publish("a");
  assert.deepEqual([methods(), isOn()], [["exportUnseen"], true]);
});

const mishaps: Readonly<Record<string, readonly [mishap: Mishap, methods: readonly string[]]>> = {
  "ran, end unknown": [{ runs: true, refusal: "interrupted" }, ["exportUnseen"]],
  "did not run": [{ runs: false }, ["exportUnseen", "view", "change"]],
  "refused": [{ refusal: "failure: no" }, ["exportUnseen", "view", "change"]],
  "late": [{ late: true }, ["exportUnseen", "view", "change"]],
};

for (const [name, [mishap, expected]] of Object.entries(mishaps)) {
  Deno.test(`publishVolume() without reading answers OK only for what it reads back: ${name}`, async () => {
    const { store, publish, unpublish, methods, isOn, disk } = remembering();
    store.mishap("exportUnseen", mishap);
    const { nqn } = await publish();
    assert.deepEqual(methods(), expected);
    store.runLate();
    assert.deepEqual([isOn(), disk().exportNqn], [true, nqn], "nothing comes late");
    await unpublish();
    store.runLate();
    assert.equal(disk().exported, false);
  });
}

Deno.test("publishVolume() whose end cannot be read fails, and reads when it is called again", async () => {
  for (const runs of [true, false]) {
    const { store, publish, methods, isOn } = remembering();
    store.mishap("exportUnseen", { runs, unreadable: true });
    await assert.rejects(publish(), refusal("unavailable"));
    assert.deepEqual(methods(), ["exportUnseen"]);
    await publish();
    assert.equal(methods()[0], "view");
    assert.ok(isOn());
  }
});

Deno.test("publishVolume() is not undone by a late repair of what it has read back before", async () => {
  const { store, publish, isOn } = remembering();
  store.edit(id, { routerUses: ["it is swap space"] });
  store.mishap("change", { late: true });
  await assert.rejects(publish(), refusal("precondition", /swap space/));
  store.edit(id, { routerUses: undefined });
  await publish();
  store.runLate();
  assert.ok(isOn());
});
