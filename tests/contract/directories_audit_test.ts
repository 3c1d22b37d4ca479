// Commands of the driver of block volumes, asked about a share of directories.
import assert from "node:assert/strict";
import { auditCommand } from "../../src/cli/audit/audit.ts";
import { runCommand } from "../support/command_run.ts";
import { gibibyte } from "../support/controller_calls.ts";
import { createDirectory, filesBelow, startDirectoryStack } from "../support/directory_stack.ts";

Deno.test("an audit of a share finds no directory without an owner, and deletes none", async () => {
  await using stack = await startDirectoryStack();
  const { path } = await createDirectory(stack, "pvc-empty");
  const machine = await createDirectory(stack, "pvc-machine");
  // As KubeVirt names a machine's disk, and this driver an image in a subvolume.
  stack.simulator.model.files.create(`${machine.path.slice(1)}/disk.img`, gibibyte);
  const before = filesBelow(stack, "/share/");
  const names = ["pvc-empty", "pvc-machine", path, `${machine.path}/disk.img`];
  const asked = [
    "--base-path",
    "/share/k8s",
    "--json",
    "--vouch",
    ...names.flatMap((name) => ["--delete", name]),
  ];
  const { out } = await runCommand(stack, auditCommand, asked);
  const { findings } = JSON.parse(out) as { findings: readonly unknown[] };
  assert.deepEqual(findings, []);
  assert.deepEqual(filesBelow(stack, "/share/"), before);
});
