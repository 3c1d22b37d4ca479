// What the doctor says of a driver of directories, over SSH.
import assert from "node:assert/strict";
import { doctorCommand } from "../../src/cli/doctor/doctor.ts";
import { plainDisk } from "../../src/simulator/model/disk.ts";
import { fakeCommandIo } from "../fakes/command_io.ts";
import { createDirectory, mark, startDirectoryStack } from "../support/directory_stack.ts";
import { reach, type Stack } from "../support/stack.ts";

/** The findings of a check, in one kind of driver. */
async function findings(stack: Stack, check: string, ...flags: string[]): Promise<string[]> {
  const { io, out } = fakeCommandIo();
  const router = reach(stack.simulator, stack.passwordFile);
  const [from, to] = [router.indexOf("--rds-address"), router.indexOf("--unexport-grace")];
  await doctorCommand([...router.slice(from, to), "--json", ...flags], io);
  const all: { check: string; state: string; found: string }[] = JSON.parse(out.join(""));
  return all.filter((finding) => finding.check === check).map(({ state, found }) => `${state}: ${found}`);
}

Deno.test("the doctor of directories finds the share well, and directories outside of --base-path", async () => {
  await using stack = await startDirectoryStack();
  const own = ["--kind", "directory", "--base-path", "/share/k8s"];
  await createDirectory(stack, "a");
  assert.match((await findings(stack, "share", ...own))[0]!, /^ok: .*directories of this cluster: 1$/);
  stack.simulator.model.files.makeDirectories(`share/old/b.${mark}`);
  assert.match((await findings(stack, "share", ...own))[0]!, /^warning: 1 directories.*\/share\/old\/b/);
  assert.equal((await findings(stack, "nfs-port", ...own)).length, 1);
  assert.deepEqual(await findings(stack, "nvme-port", ...own), []);
  assert.match(
    (await findings(stack, "nfs-port", ...own, "--rds-address=no.invalid"))[0]!,
    /^skipped: not tried/,
  );
});

Deno.test("the doctors of both kinds report a share with images, each from its own side", async () => {
  await using stack = await startDirectoryStack();
  const { disks, files } = stack.simulator.model;
  files.makeDirectories("share/csi");
  files.create("share/csi/pvc-x.img", 1n << 20n);
  disks.add({
    ...plainDisk,
    slot: "pvc-x",
    type: "file",
    filePath: "/share/csi/pvc-x.img",
    sizeBytes: 1n << 20n,
  });
  const ofDirectories = await findings(stack, "share", "--kind", "directory", "--base-path", "/share/k8s");
  assert.match(ofDirectories[0]!, /^problem: \/share holds 1 images.*makes no directory there/);
  const ofBlocks = await findings(stack, "share", "--base-path", "/storage-pool/metal-csi");
  assert.match(ofBlocks[0]!, /^problem: \/share holds 1 images of block volumes.*shares it \(nfs-sharing\)/);
});
