import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { call, FakeNode } from "../../../tests/fakes/node_deps.ts";
import { readAt, readDescribeOptions } from "./describe.ts";

Deno.test("describe says that it knows nothing of a shared directory", () => {
  const args = ["0123abcd@/share/k8s/pvc-1.9f86d081@pvc-1", "--node-id", "n1"];
  assert.throws(
    () => readDescribeOptions(args, () => undefined, new FakeKernelFiles()),
    refusal("invalid", /a shared directory.*path=\/share\/k8s\/pvc-1\.9f86d081; findmnt/),
  );
});

Deno.test("describe refuses an invalid volume id", () => {
  const legacySnapshot = "snap-7c9e6679-7425-40de-944b-e07fc1f90ae7-at-3a9f8c02d1";
  for (const id of [legacySnapshot, legacySnapshot.slice(0, 40), `snap-${"1".repeat(28)}`]) {
    const args = [id, "--node-id", "n1"];
    assert.throws(() => readDescribeOptions(args, () => undefined, new FakeKernelFiles()), VolumeError, id);
  }
});

Deno.test("describe shows a volume of which only a mapping is left, and none of which nothing is", async () => {
  const node = new FakeNode();
  const [volumeContext, secrets] = [{ encrypted: "true" }, {
    encryptionPassphrase: "correct horse battery staple",
  }];
  await node.stage({ volumeContext, secrets }, { encrypted: "true" });
  node.table = [];
  node.device.connected = false;
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  const adapters = { deps: node.deps, files: new FakeKernelFiles(), depth: "everything" } as const;
  const found = async (id: string) =>
    (await readAt(adapters, id, call())).flatMap(({ findings }) => findings.map(({ found }) => found));
  assert.deepEqual(await found("pvc-1"), [
    "there is no state file and no connection: a map is left of it: /dev/dm-40",
  ]);
  assert.deepEqual(await readAt(adapters, "pvc-2", call()), []);
  // Nothing is concluded from what the kernel does not show.
  node.deps.maps!.find = () => Promise.reject(new VolumeError("unavailable", "Cannot list the maps"));
  assert.deepEqual(await found("pvc-2"), ["there is no state file and no connection: Cannot list the maps"]);
});
