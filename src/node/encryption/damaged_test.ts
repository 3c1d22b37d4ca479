// Headers that are damaged or half written, tools that are killed, and disks that are full: what there is stays as it is,
// and what never was anything is begun anew.
import assert from "node:assert/strict";
import { block, call, ext4, FakeNode, publishContext, volumeId } from "../../../tests/fakes/node_deps.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Capability } from "../../volume/model/capabilities.ts";

const passphrase = "correct horse battery staple";
const first = publishContext({ encrypted: "true" });
const later = { ...first, mayFormat: "false" };
/** The exit code of a process that SIGKILL has ended. */
const killed = 137;

function stage(
  node: FakeNode,
  capability: Capability = ext4,
  publishContext: Record<string, string> = first,
  encryptionPassphrase = passphrase,
): Promise<void> {
  const volumeContext = { encrypted: "true" };
  const secrets = { encryptionPassphrase };
  return node.service.stage(
    { ...node.stageRequest(), capability, publishContext, volumeContext, secrets },
    call(),
  );
}

function formats(node: FakeNode): number {
  return runsOf(node, "luksFormat");
}

function runsOf(node: FakeNode, command: string): number {
  return node.processes.runs.filter(({ options }) => options.args[0] === command).length;
}

/** Kills that command of cryptsetup, or dd, once, before or after it has done what it does. */
function kill(node: FakeNode, command: string, moment: "before" | "half" | "after"): void {
  const { processes } = node;
  const whole = processes.script;
  processes.script = async (run) => {
    if (run.tool !== command && run.options.args[0] !== command) return await whole(run);
    processes.script = whole;
    if (moment !== "before") await whole(run);
    if (moment === "half") node.device.content = "garbage";
    return { code: killed };
  };
}

const kills = [
  ["luksFormat", "before"],
  ["luksFormat", "half"],
  ["luksFormat", "after"],
  ["open", "before"],
  ["open", "after"],
  // Of two writes of the label the first one.
  ["dd", "before"],
  ["dd", "after"],
] as const;

for (const [command, moment] of kills) {
  Deno.test(`${command} that a signal ends is repeated by the next stage: ${moment}`, async () => {
    for (const capability of [ext4, block]) {
      const node = new FakeNode();
      kill(node, command, moment);
      await rejectsWith(stage(node, capability), "unavailable", /exit=137/);
      assert.deepEqual([node.mapper.maps.size, node.device.connected], [0, false]);
      await stage(node, capability);
      assert.equal(node.device.luks!.inner.content, capability === ext4 ? "ext4" : "blank");
      assert.deepEqual([node.device.luks!.keys, node.device.luks!.label], [[passphrase], "rds-csi"]);
      const isRepeated = command !== "dd" || moment === "before";
      assert.equal(formats(node), isRepeated ? 2 : 1);
      // Also a label that blkid shows is written again: the other copy of the header may lack it.
      const written = node.processes.runs.filter(({ tool }) => tool === "dd");
      assert.equal(written.length, command === "dd" ? 3 : 2);
    }
  });
}

Deno.test("a header that is written by half is begun anew by its own node in its own epoch only", async () => {
  const half = async () => {
    const node = new FakeNode();
    kill(node, "luksFormat", "half");
    await rejectsWith(stage(node), "unavailable");
    assert.equal(node.known!.header, "started");
    return node;
  };
  const otherNode = await half();
  otherNode.paths.nodes.delete(`/state/known/${volumeId}.json`);
  const later = await half();
  const renewed = await half();
  renewed.device.uniqueId = "b".repeat(32);
  const larger = await half();
  larger.device.sizeBytes += 1n << 20n;
  const refused = [
    [otherNode, first],
    [later, { ...first, mayFormat: "false" }],
    [renewed, first],
    [larger, first],
    [larger, { ...first, size: String(larger.device.sizeBytes) }],
  ] as const;
  for (const [node, context] of refused) {
    await rejectsWith(stage(node, ext4, context), "precondition");
    assert.deepEqual([formats(node), node.device.content], [1, "garbage"]);
  }
});

Deno.test("a volume whose header is gone in both copies is refused, and never formatted", async () => {
  for (const capability of [ext4, block]) {
    for (const content of ["garbage", "blank"] as const) {
      for (const context of [first, later]) {
        const node = new FakeNode();
        await stage(node, capability);
        node.device.content = content;
        const refuses = () => rejectsWith(stage(node, capability, context), "precondition");
        // As after a reboot of the node: the state file is there, the mapping is not.
        node.table = [];
        node.mapper.maps.clear();
        node.device.connected = false;
        node.showDevices();
        await refuses();
        await refuses();
        assert.deepEqual([formats(node), node.device.content], [1, content]);
        assert.ok(!node.operations.slice(node.operations.lastIndexOf("connect")).includes("erase"));
      }
    }
  }
});

Deno.test("a header that is damaged in both copies, under a label that blkid can read, is refused and stays", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  node.device.luks!.answers = (head) => head.map((byte, at) => at % 16_384 === 5000 ? byte ^ 1 : byte);
  for (const context of [first, later]) {
    await rejectsWith(stage(node, ext4, context), "precondition", /expected=an undamaged copy/);
  }
  assert.deepEqual([formats(node), node.device.connected, node.mapper.maps.size], [1, false, 0]);
});

Deno.test("an encrypted volume is never staged as a plain one, nor a plain one as encrypted, by an edited class", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  for (const capability of [ext4, block]) {
    await rejectsWith(stage(node, capability, publishContext()), "invalid", /published as encrypted=false/);
    const plain = { ...node.stageRequest(), capability, publishContext: first };
    await rejectsWith(node.service.stage(plain, call()), "invalid", /published as encrypted=true/);
  }
  // Even where record and class were both made anew.
  await rejectsWith(node.stage(), "precondition", /it holds crypto_LUKS, not ext4/);
  assert.deepEqual([formats(node), node.formats.length, node.device.content], [1, 1, "luks"]);
});

Deno.test("a clone of another volume opens with that one's passphrase only, and is not formatted", async () => {
  const node = new FakeNode();
  const inner = { ...node.newDevice(), content: "ext4" as const };
  Object.assign(node.device, {
    content: "luks",
    luks: { keys: ["another volume's passphrase"], label: "rds-csi", inner },
  });
  for (const context of [later, first]) await rejectsWith(stage(node, ext4, context), "unauthenticated");
  await stage(node, ext4, later, "another volume's passphrase");
  assert.deepEqual([formats(node), node.formats.length], [0, 0]);
});

Deno.test("a line feed at the end of a passphrase counts, and so does a zero byte in it", async () => {
  for (const exact of [`${passphrase}\n`, `${passphrase}\0more`]) {
    const node = new FakeNode();
    await stage(node, ext4, first, exact);
    await node.unstage();
    assert.deepEqual(node.device.luks!.keys, [exact]);
    await rejectsWith(stage(node, ext4, later, passphrase), "unauthenticated");
    await stage(node, ext4, later, exact);
  }
});

Deno.test("a disk that is full stops a stage before it writes a header, and loses nothing after it has", async () => {
  const node = new FakeNode();
  const full = new Error("No space left on device");
  let writes = 0;
  const isState = (operation: string) => operation.startsWith("writeFile /state/volumes/");
  node.before = (operation) => {
    if (isState(operation) && ++writes > 1) throw full;
  };
  await assert.rejects(stage(node), full);
  assert.deepEqual([formats(node), node.device.content, node.mapper.maps.size], [0, "blank", 0]);
  node.before = (operation) => {
    if (isState(operation) && node.device.luks?.label === "rds-csi") throw full;
  };
  await assert.rejects(stage(node), full);
  node.before = () => {};
  await stage(node);
  assert.deepEqual([formats(node), node.device.luks!.inner.content], [1, "ext4"]);
});

Deno.test("a passphrase plays no part in growth", async () => {
  const node = new FakeNode();
  await stage(node);
  node.device.sizeBytes *= 2n;
  const range = { requiredBytes: node.device.sizeBytes - (16n << 20n), limitBytes: 0n };
  const before = node.processes.runs.length;
  const { stagingPath: volumePath } = node.stageRequest();
  await node.service.expand({ volumeId, volumePath, range }, call());
  const runs = node.processes.runs.slice(before).filter(({ tool }) => tool === "cryptsetup");
  assert.deepEqual(runs.map(({ options: { args, input } }) => [args[0], input]), [["resize", undefined]]);
  assert.deepEqual(node.device.luks!.keys, [passphrase]);
});

Deno.test("a mapping whose header cannot be read now is not taken for another driver's, and stays open", async () => {
  const node = new FakeNode();
  await stage(node);
  const open = node.mapper.maps.get(`rds-csi-${volumeId}`);
  node.deps.encryption!.assertOwn = () => {
    throw new VolumeError("unavailable", "Cannot read the header");
  };
  await rejectsWith(stage(node), "unavailable", /Cannot read the header/);
  assert.equal(node.mapper.maps.get(`rds-csi-${volumeId}`), open);
});

Deno.test("an unstage ends as the closing of its mapping does", async () => {
  const node = new FakeNode();
  await stage(node);
  node.deps.encryption!.close = () => {
    throw new VolumeError("unavailable", "Cannot close the mapping");
  };
  await rejectsWith(node.unstage(), "unavailable", /Cannot close the mapping/);
  assert.ok(node.device.connected && node.mapper.maps.has(`rds-csi-${volumeId}`));
});
