import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses } from "../../tests/fakes/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { systemClock } from "./clock.ts";
import { SystemPaths } from "./paths.ts";
import { SystemProcesses } from "./processes.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal };
const paths = new SystemPaths(new SystemProcesses({ clock: systemClock }));
const precondition = (error: unknown) => VolumeError.is(error, "precondition");

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "rds-csi-test-" }));
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("info() reports what a path is without following links", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    await Deno.symlink("/nowhere", `${folder}/link`);
    assert.deepEqual(await paths.info(folder, context), { kind: "directory" });
    assert.deepEqual(await paths.info(`${folder}/file`, context), { kind: "file" });
    assert.deepEqual(await paths.info(`${folder}/link`, context), { kind: "link" });
    assert.deepEqual(await paths.info("/dev/null", context), { kind: "other" });
    assert.equal(await paths.info(`${folder}/nothing`, context), undefined);
    assert.equal(await paths.info(`${folder}/file/below`, context), undefined);
  }));

Deno.test("ownInfo() reports the same as info() for anything but a block device, without a child", () =>
  withFolder(async (folder) => {
    const processes = new FakeProcesses();
    const own = new SystemPaths(processes);
    Deno.writeTextFileSync(`${folder}/file`, "");
    Deno.symlinkSync("nowhere", `${folder}/link`);
    const reported = ["", "/file", "/link", "/nothing", "/file/below"].map((name) =>
      own.ownInfo(folder + name, context)
    );
    assert.deepEqual((await Promise.all(reported)).map((info) => info?.kind), [
      ...["directory", "file", "link"],
      undefined,
      undefined,
    ]);
    assert.deepEqual(await own.ownInfo("/dev/null", context), { kind: "other" });
    assert.deepEqual(processes.lines, []);
  }));

Deno.test("mountPoint() resolves links in parents, and leaves the last name and missing parts unchanged", () =>
  withFolder(async (folder) => {
    await Deno.mkdir(`${folder}/real`);
    await Deno.symlink(`${folder}/real`, `${folder}/link`);
    assert.equal(await paths.mountPoint(`${folder}/link/target`), `${folder}/real/target`);
    assert.equal(await paths.mountPoint(`${folder}/link/a/b/c`), `${folder}/real/a/b/c`);
    assert.equal(await paths.mountPoint(`${folder}/link`), `${folder}/link`);
  }));

Deno.test("writeFile() replaces a file as a whole, with its mode, and leaves nothing else", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/state.new`, "left by a crash");
    await paths.writeFile(`${folder}/state`, "one", 0o600);
    await paths.writeFile(`${folder}/state`, "two", 0o600);
    assert.equal(await paths.readFile(`${folder}/state`), "two");
    assert.equal((await Deno.stat(`${folder}/state`)).mode! & 0o777, 0o600);
    assert.deepEqual(await paths.list(folder), ["state"]);
  }));

Deno.test("readFile() and list() return undefined and an empty list for missing paths", async () => {
  assert.equal(await paths.readFile("/nowhere/file"), undefined);
  assert.deepEqual(await paths.list("/nowhere"), []);
});

Deno.test("removeEmptyFolder() removes an empty folder and nothing else", () =>
  withFolder(async (folder) => {
    await Deno.mkdir(`${folder}/full/inner`, { recursive: true });
    await Deno.writeTextFile(`${folder}/file`, "");
    await assert.rejects(paths.removeEmptyFolder(`${folder}/full`), precondition);
    await assert.rejects(paths.removeEmptyFolder(`${folder}/file`), precondition);
    await paths.removeEmptyFolder(`${folder}/full/inner`);
    await paths.removeEmptyFolder(`${folder}/nothing`);
    assert.deepEqual((await paths.list(folder)).toSorted(), ["file", "full"]);
    assert.deepEqual(await paths.list(`${folder}/full`), []);
  }));

Deno.test("removeEmptyFile() leaves content, folders and links alone", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/content`, "data");
    await Deno.writeTextFile(`${folder}/empty`, "");
    await Deno.symlink(`${folder}/empty`, `${folder}/link`);
    await Deno.mkdir(`${folder}/folder`);
    for (const name of ["content", "link", "folder"]) {
      await assert.rejects(paths.removeEmptyFile(`${folder}/${name}`), precondition);
    }
    await paths.removeEmptyFile(`${folder}/empty`);
    await paths.removeEmptyFile(`${folder}/nothing`);
    assert.deepEqual((await paths.list(folder)).toSorted(), ["content", "folder", "link"]);
  }));

Deno.test("removeFile() removes a file, and never a folder", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "data");
    await Deno.mkdir(`${folder}/folder`);
    await paths.removeFile(`${folder}/file`);
    await paths.removeFile(`${folder}/file`);
    await assert.rejects(paths.removeFile(`${folder}/folder`), precondition);
  }));

Deno.test("removeFile() removes what an interrupted write left, also before its rename", () =>
  withFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/both`, "old");
    for (const name of ["both", "alone"]) await Deno.writeTextFile(`${folder}/${name}.new`, "n");
    await paths.removeFile(`${folder}/both`);
    await paths.removeFile(`${folder}/alone`);
    assert.deepEqual(await paths.list(folder), []);
  }));

Deno.test("makeFile() and makeFolder() leave existing ones unchanged", () =>
  withFolder(async (folder) => {
    await paths.makeFolder(`${folder}/a/b`, 0o750);
    await Deno.writeTextFile(`${folder}/a/b/file`, "data");
    await paths.makeFolder(`${folder}/a/b`, 0o700);
    await paths.makeFile(`${folder}/a/b/file`, 0o600);
    assert.equal(await paths.readFile(`${folder}/a/b/file`), "data");
    assert.equal((await Deno.stat(`${folder}/a/b`)).mode! & 0o777, 0o750);
  }));

Deno.test("info() reads what is in /dev from the kernel's memory, and uses a child for everything else", async () => {
  const processes = new FakeProcesses();
  processes.script = () => ({ stdout: "41ed 0 0\n" });
  const files = new FakeKernelFiles();
  files.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  const own = new SystemPaths(processes, { files });
  assert.deepEqual(await own.info("/dev/loop3", context), { kind: "block", deviceNumber: "7:3" });
  assert.equal(await own.info("/dev/loop4", context), undefined);
  assert.deepEqual(processes.lines, []);
  assert.deepEqual(await own.info("/dev/folder/x", context), { kind: "directory" });
  assert.deepEqual(await own.info("/devices", context), { kind: "directory" });
  assert.equal(processes.lines.length, 2);
});

Deno.test("setMode() sets exactly that mode", () =>
  withFolder(async (folder) => {
    for (const mode of [0o777, 0o700, 0o50]) {
      await paths.setMode(folder, mode);
      assert.equal((await Deno.stat(folder)).mode! & 0o7777, mode);
    }
  }));
