import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { systemClock } from "../host/clock.ts";
import { SystemProcesses } from "../host/processes.ts";
import { TimedFiles } from "../host/timed_files.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { refusable } from "./folders.ts";
import { SystemNfsMounts } from "./nfs_mounts.ts";

/** On a real folder with real tools; what only NFS can show is tried in guests. */
async function withFolder(work: (path: string, nfs: SystemNfsMounts) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir({ prefix: "rds-csi-nfs-" });
  const nfs = new SystemNfsMounts({
    processes: new SystemProcesses({ clock: systemClock }),
    files: new FakeKernelFiles(),
    clock: systemClock,
    mounts: {
      table: () => Promise.resolve([]),
      whoKeeps: () => Promise.reject(new Error("not asked")),
    },
    filesystems: { stats: () => Promise.reject(new Error("not asked")) },
    timedFiles: new TimedFiles(systemClock),
    identifier: { ensure() {} },
  });
  try {
    await work(path, nfs);
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

const call = () => fakeCall(new FakeClock());

Deno.test("readFolder() shows a new folder as untouched, and as empty until something is in it", async () => {
  await withFolder(async (path, nfs) => {
    const { isEmpty, isUntouched } = await nfs.readFolder(path, call());
    assert.deepEqual({ isEmpty, isUntouched }, { isEmpty: true, isUntouched: true });
    await Deno.writeTextFile(`${path}/file`, "");
    assert.equal((await nfs.readFolder(path, call())).isEmpty, false);
  });
});

Deno.test("readFolder() no longer shows a folder as untouched once its permissions or its time were changed", async () => {
  await withFolder(async (path, nfs) => {
    const isUntouched = async () => (await nfs.readFolder(path, call())).isUntouched;
    // The kernel's clock of files ticks every few milliseconds.
    for (let tries = 0; tries < 500 && await isUntouched(); tries++) await nfs.setMode(path, 0o711);
    assert.equal(await isUntouched(), false);
  });
  await withFolder(async (path, nfs) => {
    await nfs.setModified(path, 1_000);
    assert.equal((await nfs.readFolder(path, call())).isUntouched, false);
  });
});

Deno.test("setModified() and setMode() set what they are given", async () => {
  await withFolder(async (path, nfs) => {
    await nfs.setModified(path, 1_000);
    assert.equal((await nfs.readFolder(path, call())).modifiedMs, 1_000);
    await nfs.setMode(path, 0o3711);
    assert.equal((await Deno.stat(path)).mode! & 0o7777, 0o3711);
  });
});

Deno.test("refusable() tells what a server refuses for good from what may pass", async () => {
  const failing = (code: string) => Promise.reject(Object.assign(new Error(`os error ${code}`), { code }));
  for (const code of ["EPERM", "EACCES", "EROFS", "EINVAL", "EOPNOTSUPP"]) {
    const changing = refusable("set the owner", "/a", failing(code));
    await assert.rejects(
      changing,
      refusal("precondition", /Cannot set the owner of \/a because the server refuses/),
    );
  }
  for (const code of ["ESTALE", "EIO"]) {
    await assert.rejects(refusable("set the owner", "/a", failing(code)), { code });
  }
});
