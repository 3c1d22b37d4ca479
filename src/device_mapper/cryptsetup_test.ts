import assert from "node:assert/strict";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { call } from "../../tests/fakes/node_deps.ts";
import { FakeProcesses } from "../../tests/fakes/processes.ts";
import { rejectsWith } from "../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceMap } from "../volume/ports/device_maps.ts";
import { Cryptsetup } from "./cryptsetup.ts";

const device = provenDevice();
const options = { readOnly: false, allowDiscards: false };
const mapping = {
  name: "rds-csi-pvc-1",
  uuid: "CRYPT-LUKS2-0-rds-csi-pvc-1",
  path: "/dev/dm-0",
} as DeviceMap;

function fake() {
  const [files, processes, clock] = [new FakeKernelFiles(), new FakeProcesses(), new FakeClock()];
  files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
  const maps: { there: DeviceMap | undefined } = { there: undefined };
  const find = () => Promise.resolve(maps.there);
  return { files, processes, clock, maps, encryption: new Cryptsetup(processes, files, { find }, clock) };
}

Deno.test("one key is derived at a time, and a device that hangs keeps others waiting for two minutes only", async () => {
  const { processes, clock, encryption } = fake();
  const ends: (() => void)[] = [];
  processes.script = () => new Promise((resolve) => ends.push(() => resolve(0)));
  const opened = ["a", "b"].map((name) => encryption.open(name, device, "passphrase", options, call()));
  await clock.advance(100_000);
  assert.equal(processes.runs.length, 1);
  await clock.advance(30_000);
  assert.equal(processes.runs.length, 2);
  ends.forEach((end) => end());
  await Promise.all(opened);
});

Deno.test("a passphrase that was refused is tried again after longer and longer pauses, at most five minutes", async () => {
  const { processes, clock, encryption } = fake();
  processes.script = () => ({ code: 2, stderr: "No key available with this passphrase." });
  const open = () => encryption.open("a", device, "passphrase", options, call());
  const tries: number[] = [];
  for (let second = 0; second < 1800; second++) {
    await rejectsWith(open(), "unauthenticated");
    if (processes.runs.length > tries.length) tries.push(second);
    await clock.advance(1000);
  }
  assert.deepEqual(tries.map((at, index) => at - (tries[index - 1] ?? 0)).slice(1), [
    10,
    20,
    40,
    80,
    160,
    300,
    300,
    300,
    300,
  ]);
  processes.script = () => 0;
  await encryption.open("a", device, "another", options, call());
  await open();
});

Deno.test("a change of the passphrase is tried again at once when either passphrase is another one", async () => {
  const { processes, encryption } = fake();
  const keys = ["right"];
  processes.script = ({ options: { args, input } }) => {
    if (args[0] === "luksAddKey") return keys.some((key) => input!.startsWith(key)) ? 0 : 2;
    if (args[0] === "luksDump") return { stdout: '{"keyslots":{"0":{}}}' };
    return args[0] !== "open" || keys.includes(input!) ? 0 : 2;
  };
  const replace = (current: string, next: string) =>
    encryption.replacePassphrase("a", device, { current, next }, {}, call());
  await rejectsWith(replace("wrong", "new"), "unauthenticated");
  // Nothing that writes.
  assert.deepEqual(processes.runs.map(({ options: { args } }) => args[0]), ["open", "open"]);
  const runs = processes.runs.length;
  await rejectsWith(replace("wrong", "new"), "unauthenticated");
  assert.equal(processes.runs.length, runs);
  await replace("wrong", "right");
});

Deno.test("a failure of cryptsetup is unavailable, and shows no passphrase", async () => {
  const { processes, encryption } = fake();
  processes.script = () => ({ code: 1, stderr: "Device is not a valid LUKS device." });
  const wording = /not a valid LUKS device/;
  await rejectsWith(encryption.open("a", device, "secret", options, call()), "unavailable", wording);
  await rejectsWith(encryption.format(device, "secret", {}, call()), "unavailable", wording);
  await rejectsWith(encryption.complete(device, call()), "unavailable", wording);
  await rejectsWith(encryption.resize(mapping, call()), "unavailable", wording);
  const passphrases = { current: "secret", next: "secret too" };
  await rejectsWith(
    encryption.replacePassphrase("a", device, passphrases, {}, call()),
    "unavailable",
    wording,
  );
  assert.ok(processes.lines.every((line) => !line.includes("secret")));
});

Deno.test("nothing is run on a path that leads to another device by now", async () => {
  const { files, processes, encryption } = fake();
  files.nodes.set(device.path, { kind: "block", deviceNumber: "7:9" });
  await rejectsWith(encryption.format(device, "passphrase", {}, call()), "unavailable");
  files.nodes.delete(device.path);
  await rejectsWith(encryption.format(device, "passphrase", {}, call()), "unavailable");
  assert.deepEqual([processes.runs.length, files.held.size], [0, 0]);
});

Deno.test("close() leaves a mapping of another header alone, and tells one in use from one that does not go", async () => {
  const { processes, maps, encryption } = fake();
  await encryption.close(mapping, false, call());
  maps.there = { ...mapping, uuid: "CRYPT-LUKS2-1-rds-csi-pvc-1" };
  await encryption.close(mapping, false, call());
  assert.equal(processes.runs.length, 0);
  maps.there = mapping;
  processes.script = () => ({ code: 5, stderr: "Device rds-csi-pvc-1 is still in use." });
  await rejectsWith(encryption.close(mapping, false, call()), "in-use");
  processes.script = () => 0;
  await rejectsWith(encryption.close(mapping, true, call()), "in-use");
  processes.script = () => ({ code: 1, stderr: "Cannot talk to the kernel" });
  await rejectsWith(encryption.close(mapping, false, call()), "unavailable");
  processes.script = () => {
    maps.there = undefined;
    return 0;
  };
  await encryption.close(mapping, false, call());
});

Deno.test("obstacle() reports a missing tool and a kernel without dm-crypt, and nothing when all is there", async () => {
  const { processes, encryption } = fake();
  processes.script = () => {
    throw new VolumeError("precondition", "Cannot run cryptsetup because it is not installed");
  };
  assert.match(await encryption.obstacle(call()) ?? "", /not installed/);
  processes.script = ({ tool }) => tool === "dmsetup" ? { code: 1, stderr: "no such target" } : 0;
  assert.match(await encryption.obstacle(call()) ?? "", /no dm-crypt/);
  processes.script = () => 0;
  assert.equal(await encryption.obstacle(call()), undefined);
  const runs = processes.runs.length;
  assert.equal(await encryption.obstacle(call()), undefined);
  assert.equal(processes.runs.length, runs);
});
