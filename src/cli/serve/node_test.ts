import assert from "node:assert/strict";
import { RecordedEvents } from "../../../tests/fakes/node_events.ts";
import { readServeConfig } from "../config/config.ts";
import { systemClock } from "../../host/clock.ts";
import { systemRandom } from "../../host/random.ts";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { lockFolder } from "../../host/folder_lock.ts";
import { VolumeError } from "../../volume/errors.ts";
import { haveState, openNode } from "./node.ts";

Deno.test("openNode() waits until an earlier process has released the node's state", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const flags = ["--mode", "node", "--node-id", "n1", "--endpoint", `unix://${folder}/csi.sock`];
  const loop = ["--connector", "loop", "--loop-backing", folder, "--state-dir", `${folder}/state`];
  const config = readServeConfig([...flags, ...loop], () => undefined).node!;
  const log = { info: () => {}, warn: () => {} };
  const { promise: waiting, resolve: waits } = Promise.withResolvers<void>();
  const clock = {
    ...systemClock,
    sleep(ms: number, signal?: AbortSignal) {
      waits();
      return systemClock.sleep(ms, signal);
    },
  };
  const open = () => openNode(config, { clock, random: systemRandom, log, events: new RecordedEvents() });
  try {
    const earlier = await open();
    const order: string[] = [];
    const later = open().then((node) => {
      order.push("taken");
      return node;
    });
    await earlier.close();
    await waiting;
    order.push("let go");
    earlier.release();
    (await later).release();
    assert.deepEqual(order, ["let go", "taken"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

for (const killed of [true, false, undefined]) {
  const holder = killed === undefined
    ? "one that cannot be seen"
    : killed
    ? "a killed one"
    : "one that goes on";
  Deno.test(`haveState() ${killed ? "goes on beside" : "refuses beside"} ${holder} that holds the state`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
    try {
      const release = await lockFolder(folder, systemClock, 1000);
      const { ino } = await Deno.stat(`${folder}/lock`);
      const files = new FakeKernelFiles();
      const pid = killed === undefined ? 0 : 7;
      files.texts.set("/proc/locks", `1: FLOCK  ADVISORY  WRITE ${pid} fe:01:${ino} 0 EOF`);
      files.folders.set("/proc/7/task", ["7"]);
      files.texts.set("/proc/7/task/7/stat", "7 (rds-csi) D 1 7 7 0 -1 0 0");
      files.texts.set("/proc/7/task/7/status", `SigPnd:\t${killed ? "100" : "0"}`);
      const warnings: string[] = [];
      const notes = { warn: (message: string) => void warnings.push(message) };
      const taking = haveState(folder, { clock: systemClock, files, notes, timeoutMs: 10 });
      if (killed) (await taking)();
      else await assert.rejects(taking, (error) => VolumeError.is(error, "precondition"));
      assert.equal(warnings.length, killed ? 1 : 0);
      release();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

Deno.test("haveState() refuses a later process beside one that went on beside a killed one, even after that is gone", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const files = new FakeKernelFiles();
  const inode = async (name: string) => (await Deno.stat(`${folder}/${name}`)).ino;
  const have = () =>
    haveState(folder, { clock: systemClock, files, notes: { warn: () => {} }, timeoutMs: 10 });
  const refused = (error: unknown) => VolumeError.is(error, "precondition");
  try {
    const gone = await lockFolder(folder, systemClock, 1000);
    files.folders.set("/proc/7/task", ["7"]);
    files.texts.set("/proc/7/task/7/stat", "7 (rds-csi) D 1 7 7 0 -1 0 0");
    files.texts.set("/proc/7/task/7/status", "SigPnd:\t100");
    files.folders.set("/proc/8/task", ["8"]);
    files.texts.set("/proc/8/task/8/stat", "8 (rds-csi) S 1 8 8 0 -1 0 0");
    files.texts.set("/proc/8/task/8/status", "SigPnd:\t0");
    const killed = `1: FLOCK  ADVISORY  WRITE 7 fe:01:${await inode("lock")} 0 EOF`;
    files.texts.set("/proc/locks", killed);
    const beside = await have();
    const goesOn = `2: FLOCK  ADVISORY  WRITE 8 fe:01:${await inode("lock-1")} 0 EOF`;
    files.texts.set("/proc/locks", `${killed}\n${goesOn}`);
    await assert.rejects(have(), refused);
    gone();
    files.texts.set("/proc/locks", goesOn);
    await assert.rejects(have(), refused);
    beside();
    const next = await have();
    await assert.rejects(have(), refused);
    next();
    (await have())();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
