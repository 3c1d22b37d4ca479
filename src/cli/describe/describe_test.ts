import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { readDescribeOptions } from "./describe.ts";

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
