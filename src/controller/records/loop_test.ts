import assert from "node:assert/strict";
import { inTime, rememberingController, testContext } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { locationOf } from "../../volume/model/layout.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { readView } from "../load.ts";
import { changeByRule, type Decision, type Rule } from "./loop.ts";
import { marking } from "./mark.ts";
import { removing } from "./remove.ts";
import { exported, withdrawal } from "./steps.ts";
import type { View } from "./view.ts";

const id = "pvc-1";
const epoch = { counter: 1, nonce: "0123abcd" };
const held = aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { exported: true });

/** A controller that remembers a volume, and a rule of the test. */
function remembering(disk = held, settings = {}) {
  const made = rememberingController(disk, settings);
  const call = { ...made.deps, context: testContext() };
  const levels: string[] = [];
  const change = <Answer extends object>(rule: Rule<Answer>) =>
    changeByRule(call, { id, verb: "change", read: () => readView(call, id, "change") }, (view) => {
      levels.push(view.isAssumed ? "assumed" : "read");
      return rule(view);
    });
  const owned = ({ volume }: View) => getOwned(volume!, call.settings.cluster, "change");
  return { ...made, call, levels, change, owned };
}

/** A decision, without anything to wait for. */
function decided<Answer>(decision: Decision<Answer>): Promise<Decision<Answer>> {
  return Promise.resolve(decision);
}

Deno.test("changeByRule() takes a step by what is remembered, in one command", async () => {
  const { call, change, owned, levels, methods } = remembering();
  const after = await change((view) =>
    decided({ step: withdrawal(call, owned(view)), next: (after) => after })
  );
  assert.deepEqual([after.stored.exported, levels, methods()], [false, ["assumed"], ["change"]]);
});

Deno.test("changeByRule() answers nobody by what is remembered, nor throws by it", async () => {
  const throws = () => Promise.reject(new VolumeError("precondition", "Cannot do it"));
  const rules: readonly Rule<object>[] = [
    () => decided({ answer: {} }),
    ({ isAssumed }) => isAssumed ? throws() : decided({ answer: {} }),
    ({ isAssumed }) => decided(isAssumed ? { need: "own" } : { answer: {} }),
  ];
  for (const rule of rules) {
    const { change, levels, methods } = remembering();
    await change(rule);
    assert.deepEqual([levels, methods()], [["assumed", "read"], ["view"]]);
  }
  const { change } = remembering();
  await assert.rejects(change(throws), refusal("precondition"));
});

Deno.test("changeByRule() decides by a read where the router does not confirm a step", async () => {
  const { call, store, change, owned, levels, methods } = remembering();
  store.edit(id, { comment: `a note ${held.comment}` });
  await change((view) => decided({ step: withdrawal(call, owned(view)), next: () => ({}) }));
  assert.deepEqual([levels, methods()], [["assumed", "read"], ["change", "view", "change"]]);
});

Deno.test("changeByRule() gives up where the rule never has enough", async () => {
  const { call, change, owned, levels } = remembering();
  const endless: Rule<object> = (view) =>
    decided<object>({ step: withdrawal(call, owned(view)), next: () => "again" });
  await assert.rejects(change(endless), refusal("busy", /try again/));
  assert.equal(levels.length, 7);
});

Deno.test("changeByRule() waits for the grace before an epoch begins, and reads what came of the volume meanwhile", async () => {
  const off = aDisk(aRecord({ epoch, withdrawnAtSeconds: 1_700_000_000 }));
  const { call, clock, change, owned, levels, methods } = remembering(off, { unexportGraceMs: 10_000 });
  const begin: Rule<object> = (view) => {
    const volume = owned(view);
    const record = { ...volume.record, epoch: { counter: 2, nonce: "4567abcd" }, holders: [aHolder("a")] };
    const step = exported(call, "begin", volume, { record, port: 4420 }, view.isAssumed);
    return decided({ step, next: () => ({}) });
  };
  await inTime(clock, change(begin));
  assert.deepEqual([levels, methods()], [["assumed", "read", "read"], ["view", "view", "change"]]);
});

/** A rule that removes a volume, and answers with what is left of it. */
function removal({ owned, store }: ReturnType<typeof remembering>): Rule<{ files: readonly unknown[] }> {
  return (view) => {
    const volume = owned(view);
    const location = locationOf(volume.stored.imagePath, store.pools);
    return decided(removing({ volume, location }, ({ files }) => ({ files })));
  };
}

Deno.test("changeByRule() removes what is remembered in one command, and decides by what that has read back of it", async () => {
  for (const runs of [true, false]) {
    const made = remembering(aDisk(aRecord({ epoch })));
    const { store, change, levels, methods } = made;
    if (!runs) store.mishap("removeUnseen", { runs });
    assert.deepEqual(await change(removal(made)), { files: [] });
    assert.deepEqual(levels, runs ? ["assumed"] : ["assumed", "read"]);
    assert.deepEqual(methods(), runs ? ["removeUnseen"] : ["removeUnseen", "remove"]);
  }
});

Deno.test("changeByRule() waits for the grace before a removal, and reads what came of the volume meanwhile", async () => {
  const off = aDisk(aRecord({ epoch, withdrawnAtSeconds: 1_700_000_000 }));
  const made = remembering(off, { unexportGraceMs: 10_000 });
  await inTime(made.clock, made.change(removal(made)));
  assert.deepEqual(made.levels, ["assumed", "read", "read"]);
  assert.deepEqual(made.methods(), ["view", "view", "remove"]);
});

Deno.test("changeByRule() answers without a step only when nothing that was sent can come after that", async () => {
  const { call, change, owned, methods, store } = remembering();
  call.memory.inDoubt.remember(id, held.comment);
  await change((view) => decided({ answer: {}, stands: owned(view) }));
  assert.deepEqual(methods(), ["view", "change"]);
  assert.notEqual(store.disks.get(id)!.comment, held.comment);
});

Deno.test("what is remembered of a removed volume does not count for another one of its name", async () => {
  const made = remembering(aDisk(aRecord({ epoch })));
  await made.change(removal(made));
  const smaller = aDisk(aRecord(), { sizeBytes: 1n << 20n });
  made.call.memory.known.remember(smaller);
  assert.deepEqual(made.call.memory.known.get(id), smaller);
});

Deno.test("changeByRule() waits for the grace before a disk ceases to be a volume, and not before it becomes one", async () => {
  const off = aDisk(aRecord({ epoch, withdrawnAtSeconds: 1_700_000_000 }));
  for (const [kind, read] of [["release", ["view", "view"]], ["mark", ["view"]]] as const) {
    const { call, clock, change, methods } = remembering(off, { unexportGraceMs: 10_000 });
    const rule: Rule<object> = ({ volume }) =>
      decided(marking(call, { kind, disk: volume!, comment: "mine", isDone: () => true }, () => ({})));
    await inTime(clock, change(rule));
    assert.deepEqual(methods(), [...read, "change"]);
  }
});
