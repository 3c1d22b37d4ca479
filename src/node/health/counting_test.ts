import assert from "node:assert/strict";
import {
  call,
  FakeNode,
  nqn,
  publishContext,
  stagingPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { countingMismatches } from "../node_service.ts";

const mismatch = new VolumeError("identity-mismatch", "Cannot use the device");

Deno.test("countingMismatches() counts a mismatch once, also as the cause of another error, and nothing else", async () => {
  const failures: readonly [unknown, number][] = [
    [mismatch, 1],
    [new VolumeError("unavailable", "and it could not be undone", { cause: mismatch }), 1],
    [new Error("outer", { cause: new Error("inner", { cause: mismatch }) }), 1],
    [new VolumeError("precondition", "other"), 0],
    ["text", 0],
  ];
  for (const [failure, expected] of failures) {
    const { events } = new FakeNode();
    await assert.rejects(countingMismatches(events, () => Promise.reject(failure)), (e) => e === failure);
    assert.equal(events.reported.length, expected, String(failure));
  }
  const { events } = new FakeNode();
  assert.equal(await countingMismatches(events, () => Promise.resolve(1)), 1);
  assert.deepEqual(events.reported, []);
});

Deno.test("a refused stage of another volume's context counts as one identity mismatch", async () => {
  const node = new FakeNode();
  const foreign = publishContext({ nqn: "nqn.2000-02.com.mikrotik:pvc-2:1-0a0b0c0d" });
  await assert.rejects(node.service.stage(node.stageRequest({ publishContext: foreign }), call()));
  assert.deepEqual(node.events.reported, ["identity mismatch"]);
});

Deno.test("stage() and unstage() report connections, and which volumes are staged", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.stage(); // The connection exists already.
  assert.deepEqual(node.events.reported, ["connected: ok"]);
  assert.deepEqual([...node.events.staged], [volumeId]);
  await node.unstage();
  assert.deepEqual([...node.events.staged], []);
  node.device.exported = false;
  await assert.rejects(node.stage());
  assert.deepEqual(node.events.reported, ["connected: ok", "connected: failed"]);
});

Deno.test("a refused format reports why", async () => {
  const node = new FakeNode();
  node.device.content = "garbage";
  await assert.rejects(node.stage());
  node.device.content = "btrfs";
  await assert.rejects(node.stage());
  Object.assign(node.device, { content: "blank" });
  node.claimed = true;
  await assert.rejects(node.stage());
  assert.deepEqual(node.events.reported.filter((reported) => reported.startsWith("format")), [
    "format refused: unknown-data",
    "format refused: other-filesystem",
    "format refused: in-use",
  ]);
});

Deno.test("a device whose ends cannot be read counts as a refused format; a cancelled call does not", async () => {
  for (const [kind, expected] of [["unavailable", 1], ["cancelled", 0]] as const) {
    const node = new FakeNode();
    node.before = (operation) => {
      if (operation === "probe") throw new VolumeError(kind, "cannot read");
    };
    await assert.rejects(node.stage());
    const refused = node.events.reported.filter((reported) => reported === "format refused: unreadable");
    assert.equal(refused.length, expected, kind);
  }
});

Deno.test("a mount left by an earlier device counts as stale when the volume is staged or published again", async () => {
  const node = new FakeNode();
  await node.stage();
  const [mount] = node.table;
  node.table = [{ ...mount!, deviceNumber: "7:8" }];
  await assert.rejects(node.publish());
  assert.equal(node.events.reported.at(-1), "stale mount: publish");
  node.setStagingState({ mountedAs: "7:8" });
  await node.stage();
  assert.equal(node.events.reported.at(-1), "stale mount: stage");
});

Deno.test("countStaged() reports what an earlier process left staged, and leaves damaged state out", async () => {
  const node = new FakeNode();
  await node.stage();
  node.events.staged.clear();
  node.paths.nodes.set("/state/volumes/pvc-2.json", { kind: "file", text: "{" });
  await node.service.countStaged();
  assert.deepEqual([...node.events.staged], [volumeId]);
  assert.ok(node.stagingState?.nqn === nqn && node.stagingState.stagingPath === stagingPath);
});
