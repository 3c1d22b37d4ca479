// A record that is older than what nodes were given: a router that lost its last seconds, or a comment out of an earlier
// export of its configuration. Its holders were shut out since.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { routerFixes } from "../../src/doctor/router/fixes.ts";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { aPersistentVolume, aVolumeAttachment } from "../fakes/kube_client.ts";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { create, publishRequest, rejectsWith, state } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventually } from "../support/eventually.ts";

const attachments = "/apis/storage.k8s.io/v1/volumeattachments";

async function diskOf(stack: Stack, id: string) {
  return (await state(stack)).disks.find(({ slot }) => slot === id)!;
}

/** A volume that node-1 had when the configuration was exported, and node-2 has now. */
async function movedSince(stack: Stack) {
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-a");
  const first = await controller.call("ControllerPublishVolume", publishRequest(id, "node-1"));
  const exported = await diskOf(stack, id);
  await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" });
  const second = await controller.call("ControllerPublishVolume", publishRequest(id, "node-2"));
  return {
    controller,
    id,
    exported,
    first: first.publishContext["nqn"],
    second: second.publishContext["nqn"],
  };
}

/** Damages the record, and does what the doctor says, with the comment of the configuration's last export. */
async function putCommentBack(stack: Stack, id: string, comment: string): Promise<void> {
  await control(stack.simulator, `PATCH /disks/${id}`, { comment: comment.slice(0, 20) });
  await rejectsWith(
    status.FAILED_PRECONDITION,
    stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-2" }),
    /damaged/,
  );
  const [command] = routerFixes.recordDamaged(id).commands;
  await control(stack.simulator, "POST /console", {
    command: command!.replace('"…"', JSON.stringify(comment)),
  });
  assert.equal((await diskOf(stack, id))["comment"], comment);
}

Deno.test("an unpublish takes the volume from the node that the export names, and the record does not", async () => {
  await using stack = await startStack();
  const { controller, id, exported } = await movedSince(stack);
  await putCommentBack(stack, id, String(exported["comment"]));
  await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-2" });
  assert.equal((await diskOf(stack, id))["nvme-tcp-export"], false);
});

Deno.test("a publish to the holder of an older record begins an epoch that no node knows", async () => {
  await using stack = await startStack({ flags: ["--unexport-grace=0s"] });
  const { controller, id, exported, first, second } = await movedSince(stack);
  await putCommentBack(stack, id, String(exported["comment"]));
  const { publishContext } = await controller.call("ControllerPublishVolume", publishRequest(id, "node-1"));
  assert.ok(![first, second].includes(publishContext["nqn"]), publishContext["nqn"]);
  assert.equal(publishContext["epoch"]!.split("-")[0], "3");
  assert.equal(publishContext["mayFormat"], "false");
});

Deno.test("an unpublish keeps what only the leaving attachment knows: a node gets no name again that it was shut out under", async () => {
  await using cluster = await startClusterStack({
    prepare: (api) => void (api.rules = [...clusterRules, ...namespaceRules]),
    flags: ["--unexport-grace=0s"],
  });
  const { api, stack } = cluster;
  const { controller, id, exported, first, second } = await movedSince(stack);
  api.put(volumesPath, aPersistentVolume(id));
  const publishContext = { epoch: second!.split(":").at(-1)!, nqn: second! };
  api.put(attachments, aVolumeAttachment(id, "node-2", { publishContext, deleting: true }));
  // The router has lost its last seconds, and the pod on node-2 is deleted before the next round looks at the volume.
  const { comment, "nvme-tcp-server-nqn": nqn } = exported;
  await control(stack.simulator, `PATCH /disks/${id}`, { comment, "nvme-tcp-server-nqn": nqn });
  await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-2" });
  assert.equal((await diskOf(stack, id))["nvme-tcp-export"], false);
  api.delete(attachments, `csi-${id}-node-2`);
  const again = await controller.call("ControllerPublishVolume", publishRequest(id, "node-1"));
  assert.ok(![first, second].includes(again.publishContext["nqn"]), again.publishContext["nqn"]);
  assert.equal(again.publishContext["epoch"]!.split("-")[0], "3");
});

/** The router boots, and has lost what happened to the disk since it was as given. */
async function powerCut(stack: Stack, id: string, before: Readonly<Record<string, unknown>>): Promise<void> {
  const { comment, "nvme-tcp-server-nqn": nqn } = before;
  await control(stack.simulator, `PATCH /disks/${id}`, { comment, "nvme-tcp-server-nqn": nqn });
  await control(stack.simulator, "POST /reboot", { downMs: 1 });
  await eventually(async () => await diskOf(stack, id) !== undefined);
}

for (const mode of ["on", "off", "dry-run"]) {
  Deno.test(`the first answer of a router that lost its last seconds takes a node's old export away: --reconcile ${mode}`, async () => {
    await using cluster = await startClusterStack({
      prepare: (api) => void (api.rules = [...clusterRules, ...namespaceRules]),
      flags: ["--unexport-grace=0s", `--reconcile=${mode}`, "--reconcile-interval=1h"],
    });
    const { api, stack } = cluster;
    const { controller, identity } = stack.clients;
    const { id, exported, second } = await movedSince(stack);
    api.put(volumesPath, aPersistentVolume(id));
    const publishContext = { epoch: second!.split(":").at(-1)!, nqn: second! };
    api.put(attachments, aVolumeAttachment(id, "node-2", { publishContext }));
    await powerCut(stack, id, exported);
    assert.equal((await diskOf(stack, id))["nvme-tcp-export"], true);
    // As the liveness probe of the controller's pod does, every few seconds.
    await identity.call("Probe", {});
    await eventually(async () => !(await diskOf(stack, id))["nvme-tcp-export"]);
    // Its name is as after the detach that the router forgot: no node knows the next one.
    api.delete(attachments, `csi-${id}-node-2`);
    const again = await controller.call("ControllerPublishVolume", publishRequest(id, "node-3"));
    assert.equal(again.publishContext["epoch"]!.split("-")[0], "3");
  });
}

Deno.test("a call that meets a router which lost its last seconds is answered by what the round has made of it", async () => {
  await using cluster = await startClusterStack({
    prepare: (api) => void (api.rules = [...clusterRules, ...namespaceRules]),
    flags: ["--unexport-grace=0s", "--reconcile-interval=1h", "--settle-time=0s"],
  });
  const { api, stack } = cluster;
  const { id, exported, second } = await movedSince(stack);
  api.put(volumesPath, aPersistentVolume(id));
  const publishContext = { epoch: second!.split(":").at(-1)!, nqn: second! };
  api.put(attachments, aVolumeAttachment(id, "node-2", { publishContext }));
  await powerCut(stack, id, exported);
  const { entries } = await stack.clients.controller.call("ListVolumes", {});
  assert.deepEqual(entries.map(({ status }) => status!.publishedNodeIds), [[]]);
  assert.equal((await diskOf(stack, id))["nvme-tcp-export"], false);
});

Deno.test("docs/guides/disaster.md turns off the exports of this driver's volumes, and no other", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const [held, idle] = [await create(stack, "pvc-a"), await create(stack, "pvc-b")];
  await controller.call("ControllerPublishVolume", publishRequest(held));
  const size = 1 << 30;
  await control(stack.simulator, "POST /disks", {
    slot: "media",
    type: "file",
    size,
    "file-path": "storage-pool/media.img",
  });
  await control(stack.simulator, "PATCH /disks/media", { "nvme-tcp-export": true });
  const exported = async () => {
    const disks = await Promise.all([held, idle, "media"].map((slot) => diskOf(stack, slot)));
    return disks.map((disk) => disk["nvme-tcp-export"]);
  };
  assert.deepEqual(await exported(), [true, false, true]);
  const { text: command } = blocksOf(readPage("docs/guides/disaster.md")).find(({ text }) =>
    text.includes("/disk/set [find where comment")
  )!;
  const { comment } = await diskOf(stack, held);
  await control(stack.simulator, "POST /console", { command: command.trim() });
  assert.deepEqual(await exported(), [false, false, true]);
  assert.equal((await diskOf(stack, held))["comment"], comment);
});
