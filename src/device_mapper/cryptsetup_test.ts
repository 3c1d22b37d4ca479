import assert from "node:assert/strict";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { headOf, ownMetadata } from "../../tests/fakes/luks_header.ts";
import { call } from "../../tests/fakes/node_deps.ts";
import { FakeProcesses } from "../../tests/fakes/processes.ts";
import { rejectsWith } from "../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceMap } from "../volume/ports/device_maps.ts";
import { Cryptsetup } from "./cryptsetup.ts";
import { parseHeader } from "./luks_header.ts";

const device = provenDevice();
const options = { readOnly: false, allowDiscards: false };
const mapping = {
  name: "rds-csi-pvc-1",
  uuid: "CRYPT-LUKS2-0-rds-csi-pvc-1",
  path: "/dev/dm-0",
} as DeviceMap;

const ownTable = `0 64 crypt aes-xts-plain64 ${"0".repeat(128)} 0 ${device.deviceNumber} 32768`;

function fake() {
  const [files, processes, clock] = [new FakeKernelFiles(), new FakeProcesses(), new FakeClock()];
  files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
  const head = headOf(ownMetadata());
  files.contents = (_, { offset, length }) => head.slice(Number(offset), Number(offset) + length);
  const maps: { there: DeviceMap | undefined } = { there: undefined };
  const find = () => Promise.resolve(maps.there);
  return { files, processes, clock, maps, encryption: new Cryptsetup(processes, files, { find }, clock) };
}

/** Makes the mapping, as a cryptsetup that ends well does. */
function opens({ processes, maps }: ReturnType<typeof fake>): void {
  processes.script = ({ tool, options: { args } }) => {
    if (tool === "cryptsetup" && args[0] === "open") maps.there = mapping;
    if (tool === "dmsetup" && args[0] === "remove") maps.there = undefined;
    return args[0] === "table" ? { stdout: `${ownTable}\n` } : 0;
  };
}

Deno.test("one key is derived at a time, and a device that hangs keeps others waiting for two minutes only", async () => {
  const { processes, clock, encryption } = fake();
  const ends: (() => void)[] = [];
  processes.script = () => new Promise((resolve) => ends.push(() => resolve(0)));
  const opened = ["a", "b"].map((passphrase) => encryption.format(device, passphrase, {}, call()));
  await clock.advance(100_000);
  assert.equal(processes.runs.length, 1);
  await clock.advance(30_000);
  assert.equal(processes.runs.length, 2);
  ends.forEach((end) => end());
  await Promise.all(opened);
});

Deno.test("25 volumes at once, with two passphrases and 5 s a key, are all opened by calls of two minutes", async () => {
  const { files, processes, clock } = fake();
  const opened = new Set<string>();
  const find = (name: string) => Promise.resolve(opened.has(name) ? mapping : undefined);
  const encryption = new Cryptsetup(processes, files, { find }, clock);
  processes.script = async ({ tool, options: { args } }) => {
    if (args[0] === "table") return { stdout: `${ownTable}\n` };
    if (tool === "cryptsetup") await clock.sleep(5_000);
    if (tool === "cryptsetup" && args[0] === "open" && !args.includes("--test-passphrase")) {
      opened.add(args[2]!);
    }
    return 0;
  };
  const stage = async (name: string) => {
    for (let tries = 0; !opened.has(name) && tries < 10; tries++) {
      const context = fakeCall(clock, 115_000);
      await encryption.inTurn(context, async (inTurn) => {
        await encryption.replacePassphrase(name, device, { current: "a", next: "b" }, {}, inTurn);
        await encryption.open(name, device, "b", options, inTurn);
      }).catch(() => {});
      context.cancel();
    }
  };
  const staging = Promise.all(Array.from({ length: 25 }, (_, at) => stage(`volume-${at}`)));
  for (let second = 0; second < 600 && opened.size < 25; second += 5) await clock.advance(5_000);
  assert.equal(opened.size, 25);
  await staging;
});

Deno.test("a passphrase that was refused is tried again after longer and longer pauses, at most five minutes", async () => {
  const { encryption, ...rest } = fake();
  const { processes, clock } = rest;
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
  const { maps } = rest;
  opens({ encryption, ...rest });
  await encryption.open("a", device, "another", options, call());
  maps.there = undefined;
  await open();
});

Deno.test("a volume whose passphrase was refused waits until every other volume has derived its key", async () => {
  const { processes, clock, encryption } = fake();
  const open = (name: string, passphrase: string) =>
    encryption.open(name, device, passphrase, options, call()).catch(() => {});
  const replace = (current: string) =>
    encryption.replacePassphrase("b", device, { current, next: "new" }, {}, call()).catch(() => {});
  processes.script = () => ({ code: 2 });
  await open("a", "wrong");
  await replace("wrong");
  processes.runs.length = 0;
  const first = Promise.withResolvers<void>();
  let isFirst = true;
  processes.script = async () => {
    if (isFirst) await (isFirst = false, first.promise);
    return { code: 2 };
  };
  const holder = open("c", "1");
  await clock.advance(0);
  assert.equal(processes.runs.length, 1);
  const others = [open("a", "wrong too"), replace("wrong too"), open("d", "2"), open("e", "3")];
  await clock.advance(0);
  first.resolve();
  await Promise.all([holder, ...others]);
  const derived = processes.runs.filter(({ tool }) => tool === "cryptsetup");
  assert.deepEqual(derived.map(({ options: { input } }) => input).slice(0, 3), ["1", "2", "3"]);
});

Deno.test("a change of the passphrase is tried again at once when either passphrase is another one", async () => {
  const { processes, encryption } = fake();
  const keys = ["right"];
  processes.script = ({ options: { args, input } }) => {
    if (args[0] === "luksAddKey") return keys.some((key) => input!.startsWith(key)) ? 0 : 2;
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
  await rejectsWith(encryption.resize(mapping, device, call()), "unavailable", wording);
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
  await rejectsWith(encryption.format(device, "passphrase", {}, call()), "identity-mismatch");
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
  processes.script = () => ({
    code: 5,
    stderr: "device-mapper: remove ioctl on rds-csi-pvc-1 failed: Device or resource busy",
  });
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
  assert.deepEqual(processes.lines.at(-1), `dmsetup remove --uuid ${mapping.uuid} --retry`);
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

Deno.test("cryptsetup gets a checked copy of the header, is killed after two minutes, and the copy is gone afterwards", async () => {
  const node = fake();
  const { processes, files, encryption } = node;
  opens(node);
  const allowed = { readOnly: true, allowDiscards: true };
  await encryption.open(mapping.name, device, "passphrase", allowed, call());
  const [open, table] = processes.runs;
  assert.deepEqual([open!.line, table!.line], [
    "cryptsetup open /proc/1/fd//dev/loop0 rds-csi-pvc-1 --header /proc/1/fd/memory-0 --type luks2 " +
    "--disable-keyring --readonly --allow-discards --key-file=- --batch-mode --disable-locks",
    `dmsetup table --uuid ${mapping.uuid}`,
  ]);
  assert.deepEqual([open!.options.timeoutMs, open!.options.mustFinish], [120_000, undefined]);
  assert.deepEqual([files.memory.size, files.held.size], [0, 0]);
});

Deno.test("a header that is none of this driver's is given to no command", async () => {
  const { processes, files, encryption } = fake();
  const metadata = ownMetadata();
  metadata["segments"]["0"].encryption = "cipher_null-ecb";
  const head = headOf(metadata);
  files.contents = (_, { offset, length }) => head.slice(Number(offset), Number(offset) + length);
  const calls = [
    encryption.open("a", device, "passphrase", options, call()),
    encryption.replacePassphrase("a", device, { current: "a", next: "b" }, {}, call()),
    encryption.complete(device, call()),
    encryption.resize(mapping, device, call()),
  ];
  for (const each of calls) await rejectsWith(each, "precondition", /field=segments[.]0[.]encryption /);
  assert.deepEqual([processes.runs.length, files.memory.size, files.held.size], [0, 0, 0]);
});

/** Shows a map in /sys. */
function show(files: FakeKernelFiles, at: string, map: { name: string; uuid: string; below: string }): void {
  files.folders.set("/sys/block", [...files.folders.get("/sys/block") ?? [], at]);
  files.folders.set(`/sys/block/${at}/slaves`, ["x"]);
  const texts = { "dm/name": map.name, "dm/uuid": map.uuid, dev: "253:0", "slaves/x/dev": map.below };
  for (const [name, text] of Object.entries(texts)) files.texts.set(`/sys/block/${at}/${name}`, text);
}

Deno.test("an opening that was killed leaves no map of its own: neither a half-made one nor one for a key", async () => {
  const { processes, files, encryption } = fake();
  const late = new VolumeError("deadline", "Cannot finish cryptsetup because it takes too long");
  const maps = [
    { name: mapping.name, uuid: mapping.uuid, below: "gone" },
    { name: "temporary-cryptsetup-123", uuid: "CRYPT-TEMP-temporary-cryptsetup-123", below: "7:0" },
    { name: "temporary-cryptsetup-124", uuid: "CRYPT-TEMP-temporary-cryptsetup-124", below: "7:9" },
    { name: "rds-csi-pvc-2", uuid: "CRYPT-LUKS2-0-rds-csi-pvc-2", below: "7:0" },
    { name: "somebodys", uuid: "LVM-x", below: "7:0" },
  ];
  processes.script = ({ tool }) => {
    if (tool === "dmsetup") return 1;
    maps.forEach((map, at) => show(files, `dm-${at}`, map));
    throw late;
  };
  await assert.rejects(encryption.open(mapping.name, device, "passphrase", options, call()), late);
  assert.deepEqual(
    processes.lines.slice(1),
    maps.slice(0, 2).map(({ uuid }) => `dmsetup remove --uuid ${uuid} --retry`),
  );
});

Deno.test("an opening that finds another one's mapping leaves it alone", async () => {
  const { processes, files, maps, encryption } = fake();
  const open = () => encryption.open(mapping.name, device, "passphrase", options, call());
  maps.there = mapping;
  await rejectsWith(open(), "unavailable", /open already/);
  maps.there = undefined;
  processes.script = () => {
    show(files, "dm-0", { ...mapping, below: "7:0" });
    return { code: 5, stderr: "Device rds-csi-pvc-1 already exists." };
  };
  await rejectsWith(open(), "unavailable", /already exists/);
  assert.equal(processes.runs.length, 1);
});

Deno.test("a change of the passphrase is made in the copy, and then written: a new key, both headers, the earlier key", async () => {
  const { processes, files, encryption } = fake();
  const before = headOf(ownMetadata());
  const device0 = before.slice();
  files.contents = (_, { offset, length }) => device0.slice(Number(offset), Number(offset) + length);
  processes.script = ({ tool, options: { args, input } }) => {
    const field = (name: string) => args.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    if (tool === "dd") {
      const [at, bytes] = [Number(field("seek")), Number(field("bs"))];
      device0.set(files.memory.get(field("if")!)!.subarray(at, at + bytes), at);
      return 0;
    }
    if (args[0] === "luksRemoveKey") {
      const after = headOf(ownMetadata({ "1": "A".repeat(43) + "=" }), {
        seqid: 5n,
        label: "rds-csi-unfinished",
      });
      files.memory.set(args[1]!, after);
    }
    const hasNext = processes.runs.some(({ options }) => options.args[0] === "luksAddKey");
    return args[0] === "open" && input === "next" && !hasNext ? 2 : 0;
  };
  await encryption.replacePassphrase("a", device, { current: "current", next: "next" }, {}, call());
  assert.deepEqual(
    processes.runs.map(({ tool, options: { args } }) => {
      const at = args.find((each) => each.startsWith("seek="));
      return tool === "dd" ? `${at}` : `${args[0]} ${args[1]}`;
    }),
    [
      "open /proc/1/fd/memory-0",
      "open /proc/1/fd/memory-0",
      "luksAddKey /proc/1/fd/memory-0",
      "open /proc/1/fd/memory-0",
      "luksRemoveKey /proc/1/fd/memory-0",
      "seek=290816",
      "seek=0",
      "seek=16384",
      "seek=32768",
    ],
  );
  const after = parseHeader(device0, "x");
  assert.deepEqual([after.label, after.seqid, Object.keys(after.metadata.keyslots)], ["rds-csi", 6n, ["1"]]);
  assert.equal(files.memory.size, 0);
});

Deno.test("a change of the passphrase that was interrupted between both copies of the header ends in both", async () => {
  for (
    const [secondary, isWritten] of [[headOf(ownMetadata(), { seqid: 2n }), true], [
      headOf(ownMetadata()),
      false,
    ]] as const
  ) {
    for (const keys of [["0"], ["0", "1"]]) {
      const { processes, files, encryption } = fake();
      const salts = Object.fromEntries(keys.map((slot) => [slot, "A".repeat(43) + "="]));
      const head = headOf(ownMetadata(salts));
      head.set(secondary.subarray(16_384, 32_768), 16_384);
      files.contents = (_, { offset, length }) => head.slice(Number(offset), Number(offset) + length);
      processes.script = ({ tool, options: { args } }) => {
        if (tool === "dd") {
          const [at, bytes] = ["seek=", "bs="].map((name) =>
            Number(args.find((each) => each.startsWith(name))!.slice(name.length))
          );
          const [from] = files.memory.values().toArray().slice(-1);
          head.set(from!.subarray(at!, at! + bytes!), at);
        }
        return args[0] === "luksRemoveKey" ? 2 : 0;
      };
      await encryption.replacePassphrase("a", device, { current: "current", next: "next" }, {}, call());
      const { isInBoth, seqid } = parseHeader(head, "x");
      assert.deepEqual([isInBoth, seqid], [true, isWritten ? 4n : 3n]);
    }
  }
});

Deno.test("no device stays open whose call ends in the moment in which it opens", async () => {
  const { files, encryption, clock } = fake();
  const context = fakeCall(clock);
  const { hold } = files;
  files.hold = async (path, signal) => {
    const held = await hold.call(files, path, signal);
    context.cancel();
    return held;
  };
  await rejectsWith(encryption.format(device, "passphrase", {}, context), "cancelled");
  assert.equal(files.held.size, 0);
});
