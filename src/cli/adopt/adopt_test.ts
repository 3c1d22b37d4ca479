import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { control } from "../../../tests/support/control_port.ts";
import { runCommand } from "../../../tests/support/command_run.ts";
import {
  changesNothing,
  create,
  gibibyte,
  mount,
  publishRequest,
  state,
} from "../../../tests/support/controller_calls.ts";
import { type Stack, startStack } from "../../../tests/support/stack.ts";
import { FlagError } from "../flags.ts";
import { VolumeError } from "../../volume/errors.ts";
import { adoptCommand } from "./adopt.ts";
import { exitCodes } from "../io.ts";
import { releaseCommand } from "../release.ts";

const folder = "/storage-pool/metal-csi";
const id = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const nqn = `nqn.2000-02.com.mikrotik:${id}`;

async function addEarlier(stack: Stack, over: Record<string, unknown> = {}): Promise<void> {
  await control(stack.simulator, "POST /files", {
    name: `${folder}/${id}.img`,
    type: "file",
    size: Number(gibibyte),
  });
  await control(stack.simulator, "POST /disks", {
    slot: id,
    "file-path": `${folder}/${id}.img`,
    size: String(gibibyte),
    "nvme-tcp-export": true,
    "nvme-tcp-server-port": 4420,
    "nvme-tcp-server-nqn": nqn,
    ...over,
  });
}

async function disk(stack: Stack) {
  return (await state(stack)).disks.find(({ slot }) => slot === id)!;
}

const adopt = (stack: Stack, ...args: string[]) => runCommand(stack, adoptCommand, [id, ...args]);
const release = (stack: Stack, volume = id) => runCommand(stack, releaseCommand, [volume]);
const publish = (stack: Stack, node: string) =>
  stack.clients.controller.call("ControllerPublishVolume", publishRequest(id, node, mount));
const unpublish = (stack: Stack) =>
  stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" });

Deno.test("adopt and release migrate a volume and give it back unchanged, while a node holds it", async () => {
  await using stack = await startStack();
  await addEarlier(stack, { comment: "do not touch" });
  const before = await disk(stack);
  const { code, out } = await adopt(stack, "--kind", "ext4", "--node", "node-1");
  assert.equal(code, exitCodes.ok);
  assert.match(out, /is this cluster's: it goes on under its NQN for node-1/);
  assert.deepEqual({ ...await disk(stack), comment: "" }, { ...before, comment: "" });
  await changesNothing(stack, async () => {
    assert.match(
      (await adopt(stack, "--kind", "ext4", "--node", "node-1")).out,
      /was already this cluster's/,
    );
    assert.equal((await publish(stack, "node-1")).publishContext["nqn"], nqn);
    await assert.rejects(
      adopt(stack, "--kind", "ext4"),
      refusal("precondition", /already adopted for other nodes/),
    );
  });
  const given = await release(stack);
  assert.match(given.out, new RegExp(`is given back; it is exported under ${nqn}, and goes on for node-1`));
  assert.deepEqual(await disk(stack), before);
  await changesNothing(stack, async () => {
    assert.match((await release(stack)).out, /had no record: nothing changed/);
  });
});

Deno.test("adopt repeated with another kind, access mode or use says what the volume is, and changes nothing", async () => {
  await using stack = await startStack();
  await addEarlier(stack);
  await adopt(stack, "--kind", "ext4", "--node", "node-1");
  const refused = (text: RegExp, ...args: string[]) =>
    assert.rejects(adopt(stack, ...args, "--node", "node-1"), refusal("precondition", text));
  await changesNothing(stack, async () => {
    await refused(/is="ext4, ReadWriteOnce" claimed="xfs, ReadWriteOnce"/, "--kind", "xfs");
    await refused(/claimed="block, ReadWriteOnce"/, "--kind", "block");
    await refused(
      /is="ext4, ReadWriteOnce" claimed="ext4, ReadWriteOncePod"/,
      ...["--kind", "ext4", "--access-mode", "ReadWriteOncePod"],
    );
    await refused(/adopted writable: .*claimed=read-only/, "--kind", "ext4", "--read-only");
  });
});

Deno.test("release exports a volume under the prefix of its own name, whatever --nqn-prefix says, or refuses", async () => {
  const flags = ["--nqn-prefix", "nqn.2014-08.org.example"];
  await using stack = await startStack({ flags });
  const own = `nqn.2014-08.org.example:${id}`;
  await addEarlier(stack, { "nvme-tcp-server-nqn": own });
  await adopt(stack, "--kind", "ext4", ...flags);
  await publish(stack, "node-1");
  await unpublish(stack);
  const under = String((await disk(stack))["nvme-tcp-server-nqn"]);
  for (const name of [id, `nqn.2014-08.org.example:another`, `${own}:1:2`]) {
    await control(stack.simulator, `PATCH /disks/${id}`, { "nvme-tcp-server-nqn": name });
    await changesNothing(stack, () =>
      assert.rejects(
        release(stack),
        refusal("precondition", /its prefix is unknown/),
      ));
  }
  await control(stack.simulator, `PATCH /disks/${id}`, { "nvme-tcp-server-nqn": under });
  assert.match((await release(stack)).out, new RegExp(`it is exported under ${own}`));
  assert.equal((await disk(stack))["nvme-tcp-server-nqn"], own);
});

Deno.test("release turns the export on again if it is off, and refuses volumes that the legacy driver could not use", async () => {
  await using stack = await startStack();
  await addEarlier(stack);
  const before = await disk(stack);
  await adopt(stack, "--kind", "ext4");
  assert.match((await publish(stack, "node-1")).publishContext["nqn"]!, /:1-/);
  const refused = (volume: string, text: RegExp) =>
    assert.rejects(release(stack, volume), refusal("precondition", text));
  const own = await create(stack, "pvc-own");
  await changesNothing(stack, async () => {
    await refused(id, /under an NQN that the legacy driver does not know: node=node-1/);
    await refused(own, /this driver made it/);
  });
  await unpublish(stack);
  assert.equal((await disk(stack))["nvme-tcp-export"], false);
  assert.match((await release(stack)).out, /is given back/);
  // Publishing it has stopped the router from mounting it, which should stay.
  assert.deepEqual(await disk(stack), { ...before, "mount-filesystem": false });
});

Deno.test("release that is interrupted before or after its command ends the same when it is repeated", async () => {
  for (const action of ["drop-before", "drop-after"] as const) {
    await using stack = await startStack();
    await addEarlier(stack);
    const before = await disk(stack);
    await adopt(stack, "--kind", "block");
    stack.simulator.faults.arm({ match: "/disk set", nth: 1, times: 1, action, value: undefined });
    await release(stack).catch((error) => assert.ok(VolumeError.is(error), String(error)));
    stack.simulator.faults.clear();
    assert.equal((await release(stack)).code, exitCodes.ok);
    assert.deepEqual(await disk(stack), before, action);
  }
});

Deno.test("adopt migrates nothing on a doubt", async () => {
  await using stack = await startStack();
  await addEarlier(stack, { "nvme-tcp-export": false });
  const refused = (args: string[], kind: "precondition" | "not-found", text: RegExp) =>
    assert.rejects(runCommand(stack, adoptCommand, args), refusal(kind, text));
  const own = await create(stack, "pvc-own");
  await changesNothing(stack, async () => {
    await refused([id, "--kind", "ext4", "--node", "node-1"], "precondition", /not exported/);
    await refused(["pvc-none", "--kind", "ext4"], "not-found", /there is none/);
    await refused(
      [own, "--kind", "ext4", "--node", "node-1"],
      "precondition",
      /already adopted for other nodes/,
    );
    const many = ["--kind", "ext4", "--node", "node-1", "--node", "node-2"];
    await refused([id, ...many], "precondition", /more nodes have it/);
  });
});

Deno.test("adopt and release report wrong arguments, and send nothing", async () => {
  await using stack = await startStack();
  const before = await stack.count();
  await assert.rejects(adopt(stack), FlagError);
  await assert.rejects(adopt(stack, "--kind", "btrfs"), FlagError);
  await assert.rejects(runCommand(stack, adoptCommand, []), FlagError);
  await assert.rejects(runCommand(stack, releaseCommand, []), FlagError);
  assert.deepEqual(await stack.count(), before);
});
