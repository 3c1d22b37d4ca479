// A disk with a foreign file system, from the simulated router through a static PersistentVolume to a pod's folder.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { publishRequest } from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";
import { call, ext4, nodeTest, RealNode, run } from "./harness.ts";
import { runsOf, wrappedTool } from "./wrapped_tool.ts";

const sizeBytes = 64n << 20n;
const path = "/storage-pool/images/films";

nodeTest(
  "a static volume is mounted with what is in it, and no file system is ever made",
  async ({ folder }) => {
    const mkfs = wrappedTool(folder, "mkfs.ext4", '"$tool" "$@"');
    const node = new RealNode(folder, "node-1", { toolPaths: mkfs });
    try {
      const simulator = { backingDirectory: node.backing, exporter: "loop" } as const;
      await using stack = await startStack({ simulator });
      await control(stack.simulator, "POST /files", { name: path, type: "file", size: Number(sizeBytes) });
      const disk = { slot: "films", "file-path": path, size: String(sizeBytes), comment: "films" };
      await control(stack.simulator, "POST /disks", disk);
      const image = (await run("find", node.backing, "-name", "films", "-type", "f")).trim();
      const content = `${folder}/content`;
      await Deno.mkdir(content);
      await Deno.writeTextFile(`${content}/film.txt`, "a film");
      await run("mkfs.ext4", "-q", "-d", content, image);
      const publish = { ...publishRequest("films"), volumeContext: { static: "true" } };
      const { controller } = stack.clients;
      const { publishContext } = await controller.call("ControllerPublishVolume", publish);
      const volume = { volumeId: "films", stagingPath: node.staging("films") };
      const volumeContext = { static: "true" };
      const use = { capability: ext4, mountFlags: [], publishContext, volumeContext };
      const target = { volumeId: "films", targetPath: node.target("films") };
      await node.service.stage({ ...volume, ...use }, call());
      await node.service.publish({ ...volume, ...target, ...use, readOnly: false }, call());
      assert.equal(await Deno.readTextFile(`${target.targetPath}/film.txt`), "a film");
      await node.service.unpublish(target, call());
      await node.service.unstage(volume, call());
      await controller.call("ControllerUnpublishVolume", { volumeId: "films", nodeId: "node-1" });
      assert.equal(runsOf(folder, "mkfs.ext4"), 0);
      await assert.rejects(controller.call("DeleteVolume", { volumeId: "films" }), /nothing is removed/);
      assert.equal(BigInt((await Deno.stat(image)).size), sizeBytes);
    } finally {
      node.libc.close();
    }
  },
);

nodeTest(
  "a static volume without a file system stays as it is, however blank it looks",
  async ({ folder }) => {
    const node = new RealNode(folder, "node-1");
    try {
      const simulator = { backingDirectory: node.backing, exporter: "loop" } as const;
      await using stack = await startStack({ simulator });
      await control(stack.simulator, "POST /files", { name: path, type: "file", size: Number(sizeBytes) });
      await control(stack.simulator, "POST /disks", {
        slot: "films",
        "file-path": path,
        size: String(sizeBytes),
      });
      const publish = { ...publishRequest("films"), volumeContext: { static: "true" } };
      const { publishContext } = await stack.clients.controller.call("ControllerPublishVolume", publish);
      const volume = { volumeId: "films", stagingPath: node.staging("films") };
      const stage = { ...volume, capability: ext4, mountFlags: [], publishContext, volumeContext: {} };
      await assert.rejects(node.service.stage(stage, call()), /format/);
      await node.service.unstage(volume, call());
      const image = (await run("find", node.backing, "-name", "films", "-type", "f")).trim();
      assert.equal((await Deno.stat(image)).blocks, 0);
    } finally {
      node.libc.close();
    }
  },
);
