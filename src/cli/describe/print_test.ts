import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { call, FakeNode, stagingPath } from "../../../tests/fakes/node_deps.ts";
import { judgeVolume } from "../../doctor/node/volume_judge.ts";
import { viewVolume } from "../../doctor/node/volume_view.ts";
import { volumesOfNode } from "../../doctor/node/volumes.ts";
import { formatTable, formatVolume, jsonValue, volumeJson } from "./print.ts";

Deno.test("formatVolume(), formatTable() and volumeJson() say the same", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  node.holder = { certain: true, description: "process 7 (dd)" };
  const [found] = await volumesOfNode(node.deps, call());
  const adapters = { deps: node.deps, files: new FakeKernelFiles(), depth: "everything" } as const;
  const view = await viewVolume(adapters, found!, call());
  const volume = { view, findings: judgeVolume(view) };
  const text = formatVolume(volume).join("\n");
  assert.match(text, /^volume +pvc-1: published$/m);
  assert.match(text, /^device +\/dev\/loop3 \(7:3\), 1 GiB \(1073741824 bytes\)$/m);
  assert.match(text, /^used +\/dev\/loop3 is open: process 7 \(dd\); to end that: end that process$/m);
  assert.ok(text.includes(stagingPath) && text.endsWith("describe: healthy"), text);
  const [head, row] = formatTable([volume]);
  assert.match(head!, /^VOLUME +KIND +STATE +DEVICE +SIZE +CONNECTIONS +MOUNTS +HEALTH$/);
  assert.match(row!, /^pvc-1 +ext4 +published +\/dev\/loop3 +1 GiB +nvme3=live +2 +healthy$/);
  const json = JSON.parse(JSON.stringify(volumeJson(volume), jsonValue));
  assert.deepEqual([json.volume, json.healthy, json.device.sizeBytes, json.device.proven], [
    "pvc-1",
    true,
    2 ** 30,
    true,
  ]);
  assert.deepEqual(json.mounts.map(({ role }: { role: string }) => role), ["staging", "published"]);
});
