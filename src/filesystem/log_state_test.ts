import assert from "node:assert/strict";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses, type Scripted } from "../../tests/fakes/processes.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { VolumeError } from "../volume/errors.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import type { LogState } from "../volume/ports/node_ports.ts";
import { readLogState } from "./log_state.ts";

const context = { requestId: "t", signal: new AbortController().signal };
const device = provenDevice({ path: "/dev/loop3", deviceNumber: "7:3", sizeBytes: 1073741824n });

function read(
  filesystem: FilesystemType,
  { script = 0, contents }: { script?: Scripted; contents?: () => Uint8Array },
): Promise<LogState> {
  const processes = new FakeProcesses();
  processes.script = ({ line }) => line === "xfs_logprint -t /dev/loop3" ? script : undefined;
  const files = new FakeKernelFiles();
  if (contents !== undefined) files.contents = contents;
  return readLogState(device, filesystem, processes, { files, clock: new FakeClock() }, context);
}

/** The first block of an ext4 with those incompatible features. */
function superblock(features: number): Uint8Array {
  const bytes = new Uint8Array(4096);
  const view = new DataView(bytes.buffer);
  view.setUint16(1024 + 0x38, 0xef53, true);
  view.setUint32(1024 + 0x60, features, true);
  return bytes;
}

for (const [features, state] of [[0x2c2, "clean"], [0x2c6, "dirty"]] as const) {
  Deno.test(`readLogState() is ${state} for ext4 features ${features.toString(16)}`, async () => {
    assert.deepEqual(await read("ext4", { contents: () => superblock(features) }), { state });
  });
}

Deno.test("readLogState() is unknown where there is no ext4", async () => {
  assert.equal((await read("ext4", { contents: () => new Uint8Array(4096) })).state, "unknown");
});

Deno.test("readLogState() throws unavailable when the device cannot be read", async () => {
  const contents = () => {
    throw new VolumeError("unavailable", "Input/output error");
  };
  await assert.rejects(read("ext4", { contents }), refusal("unavailable", /./));
  await assert.rejects(read("ext4", { contents: () => new Uint8Array(512) }), refusal("unavailable", /./));
});

/** What xfs_logprint 6.1 prints. */
const printed = (state: string) =>
  "xfs_logprint:\n    data device: 0x700\n    log device: 0x700 daddr: 327728 length: 131072\n\n" +
  `    log tail: 2 head: 19244 state: <${state}>\n\n\nLOG REC AT LSN cycle 1 block 2 (0x1, 0x2)\n`;

const answers: readonly [string, Scripted, LogState["state"]][] = [
  ["a clean log", { stdout: printed("CLEAN") }, "clean"],
  ["a dirty log", { stdout: printed("DIRTY") }, "dirty"],
  ["another word", { stdout: printed("MAYBE") }, "unknown"],
  ["nothing", { stdout: "" }, "unknown"],
  ["a failure after its answer", { code: 1, stdout: printed("CLEAN") }, "unknown"],
  [
    "a complaint beside its answer",
    { stdout: printed("CLEAN"), stderr: "mismatched uuid in log" },
    "unknown",
  ],
  [
    "an answer in what a file was called",
    { stdout: `xfs_logprint:\n    bad\n${printed("CLEAN")}` },
    "unknown",
  ],
];

for (const [name, script, state] of answers) {
  Deno.test(`readLogState() is ${state} when xfs_logprint prints ${name}`, async () => {
    assert.equal((await read("xfs", { script })).state, state);
  });
}
