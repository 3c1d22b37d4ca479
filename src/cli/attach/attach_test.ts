import assert from "node:assert/strict";
import { fakeCommandIo } from "../../../tests/fakes/command_io.ts";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { call, epoch, FakeNode, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import { type AttachRequest, attachVolume, readPassphrase } from "./attach.ts";
import { detachVolume } from "./detach.ts";
import { parseSubject } from "./subject.ts";

const prefix = "nqn.2000-02.com.mikrotik";

/** A node, and the kernel's read-only flag of its only device, which follows what is set. */
function machine(): { node: FakeNode; files: FakeKernelFiles } {
  const node = new FakeNode();
  const files = new FakeKernelFiles();
  node.after = (operation) => {
    if (operation === "setReadOnly") {
      files.texts.set("/sys/dev/block/7:3/ro", node.device.readOnly ? "1" : "0");
    }
  };
  return { node, files };
}

async function attach(
  { node, files }: ReturnType<typeof machine>,
  change: Partial<AttachRequest> = {},
): Promise<string> {
  const request = {
    subject: { volumeId, nqn: undefined },
    address: "10.0.0.1",
    port: 4420,
    sizeBytes: 0n,
    existing: false,
    ...change,
  };
  return await attachVolume(node.deps, files, request, (device) => Promise.resolve(device.path), call());
}

const fails = (kind: VolumeErrorKind, wording?: RegExp) => (error: unknown) => {
  assert.ok(VolumeError.is(error, kind), String(error));
  if (wording !== undefined) assert.match(error.message, wording);
  return true;
};

Deno.test("attachVolume() finds the export of a volume, and only reads", async () => {
  const parts = machine();
  assert.equal(await attach(parts), "/dev/loop3");
  assert.deepEqual(parts.node.operations, ["connect", "setReadOnly"]);
  assert.equal(parts.node.device.readOnly, true);
});

Deno.test("attachVolume() sets no other volume's device read-only that has got the device's name", async () => {
  const parts = machine();
  const { node } = parts;
  const other = node.newDevice({ connected: true });
  const { setReadOnly } = node.deps.devices;
  node.deps.devices.setReadOnly = (device, readOnly, context) => {
    // While a process has it open, the kernel gives its name to no other device.
    if (!node.held.has(device.deviceNumber)) {
      node.device.path = "/dev/loop9";
      node.devices.set(`${prefix}:pvc-9:${epoch}`, other);
    }
    return setReadOnly(device, readOnly, context);
  };
  await attach(parts);
  assert.deepEqual([node.device.readOnly, other.readOnly, [...node.held]], [true, false, []]);
});

Deno.test("attachVolume() refuses what is not offered, offered twice, staged or connected, before it connects", async () => {
  const parts = machine();
  const { node } = parts;
  node.offered = () => [`${prefix}:pvc-12:${epoch}`];
  await assert.rejects(attach(parts), fails("not-found", /attach --help/));
  node.offered = () => [nqn, `${prefix}:pvc-1:2-0a0b0c0d`];
  await assert.rejects(attach(parts), fails("precondition", /name the NQN/));
  node.offered = () => [nqn];
  node.device.connected = true;
  await assert.rejects(attach(parts), fails("in-use", /connected here already/));
  node.device.connected = false;
  await node.stage();
  const before = [...node.operations];
  await assert.rejects(attach(parts), fails("in-use", /staged it here/));
  node.setStagingState({ kind: "none" as never });
  await assert.rejects(attach(parts), fails("precondition", /damaged/));
  assert.deepEqual(node.operations, before);
});

Deno.test("attachVolume() undoes its connection when the proof, the flag or the use of it fails", async () => {
  const failures: readonly ((parts: ReturnType<typeof machine>) => Promise<unknown>)[] = [
    (parts) => attach(parts, { sizeBytes: 1n << 60n }),
    (parts) => {
      parts.node.device.nsid = 2;
      return attach(parts);
    },
    (parts) => {
      parts.node.after = () => {}; // The kernel does not show the flag.
      return attach(parts);
    },
    ({ node, files }) =>
      attachVolume(
        node.deps,
        files,
        { subject: { volumeId, nqn }, address: "a", port: 1, sizeBytes: 0n, existing: false },
        () => Promise.reject(new VolumeError("cancelled", "stopped")),
        call(),
      ),
  ];
  for (const fail of failures) {
    const parts = machine();
    await assert.rejects(fail(parts), (error) => VolumeError.is(error));
    assert.equal(parts.node.operations.at(-1), "disconnect");
    assert.equal(parts.node.device.connected, false);
  }
});

Deno.test("attachVolume() leaves the connection writable to a kubelet that staged the volume meanwhile", async () => {
  const parts = machine();
  const { node } = parts;
  node.after = (operation) => {
    if (operation !== "connect") return;
    node.paths.nodes.set("/state/volumes", { kind: "directory" });
    node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "half" });
  };
  await assert.rejects(attach(parts), (error) => VolumeError.is(error));
  assert.deepEqual(node.operations, ["connect"]);
  assert.deepEqual([node.device.connected, node.device.readOnly], [true, false]);
});

Deno.test("attachVolume() with existing changes nothing, and connects nothing", async () => {
  const parts = machine();
  await assert.rejects(attach(parts, { existing: true }), fails("not-found"));
  await parts.node.stage();
  const before = [...parts.node.operations];
  assert.equal(await attach(parts, { existing: true }), "/dev/loop3");
  assert.deepEqual(parts.node.operations, before);
});

const subject = { volumeId, nqn: undefined };

Deno.test("detachVolume() does not flush a read-only device, and flushes any other", async () => {
  const parts = machine();
  const { node, files } = parts;
  await attach(parts);
  assert.equal(await detachVolume(node.deps, files, subject, call()), nqn);
  assert.equal(node.operations.at(-1), "forceDisconnect");
  node.device.connected = true;
  files.texts.set("/sys/dev/block/7:3/ro", "0");
  await detachVolume(node.deps, files, subject, call());
  assert.equal(node.operations.at(-1), "disconnect");
  await assert.rejects(detachVolume(node.deps, files, subject, call()), fails("not-found"));
});

const uses:
  readonly (readonly [what: string, use: (parts: ReturnType<typeof machine>) => unknown, wording: RegExp])[] =
    [
      ["mounted", ({ node }) => node.addMount("7:3", "/mnt"), /loop3 is mounted at \/mnt/],
      [
        "bound",
        ({ node }) => {
          node.addMount("0:6", "/pod/dev", { filesystem: "devtmpfs", root: "/loop3" });
          node.paths.nodes.set("/pod/dev", { kind: "block", deviceNumber: "7:3" });
        },
        /loop3 is bound at \/pod\/dev/,
      ],
      [
        "open",
        ({ node }) => node.holder = { certain: true, description: "process 7 (dd)" },
        /process 7 \(dd\)/,
      ],
      ["perhaps open", ({ node }) => node.holder = { certain: false, description: "perhaps 8" }, /perhaps 8/],
      ["claimed elsewhere", ({ node }) => node.claimed = true, /opened exclusively/],
      [
        "a partition of it is mounted",
        ({ node }) => {
          node.partitions = [{ path: "/dev/loop3p1", deviceNumber: "259:9" }];
          node.addMount("259:9", "/mnt/part");
        },
        /loop3p1 is mounted at \/mnt\/part/,
      ],
    ];

for (const [what, use, wording] of uses) {
  Deno.test(`detachVolume() disconnects nothing that is ${what}`, async () => {
    const parts = machine();
    await attach(parts);
    use(parts);
    const before = [...parts.node.operations];
    await assert.rejects(
      detachVolume(parts.node.deps, parts.files, subject, call()),
      fails("in-use", wording),
    );
    assert.deepEqual(parts.node.operations, before);
  });
}

Deno.test("parseSubject() accepts volumes and this driver's NQNs, and no others", () => {
  assert.deepEqual(parseSubject("pvc-1", prefix), { volumeId: "pvc-1", nqn: undefined });
  assert.deepEqual(parseSubject(nqn, prefix), { volumeId: "pvc-1", nqn });
  const wrong = [
    "",
    "PVC",
    "../x",
    "nqn.2014-08.org.nvmexpress.discovery",
    `${prefix}:a:b:c`,
    `${prefix}.x:pvc-1:1`,
  ];
  for (const text of wrong) assert.throws(() => parseSubject(text, prefix), fails("invalid"));
});

Deno.test("attachVolume() opens an encrypted volume read-only, and detachVolume() closes it", async () => {
  const parts = machine();
  const { node, files } = parts;
  const inner = { ...node.newDevice(), content: "ext4" as const };
  Object.assign(node.device, { content: "luks", luks: { keys: ["passphrase"], label: "rds-csi", inner } });
  await assert.rejects(attach(parts, { passphrase: "wrong" }), fails("unauthenticated"));
  assert.deepEqual([node.device.connected, node.mapper.maps.size], [false, 0]);
  assert.equal(await attach(parts, { passphrase: "passphrase" }), "/dev/dm-40");
  assert.ok(node.cryptsetup.flags.get("rds-csi-pvc-1")!.includes("--readonly"));
  node.held.add("253:40");
  await assert.rejects(detachVolume(node.deps, files, { volumeId, nqn: undefined }, call()), fails("in-use"));
  node.held.clear();
  await detachVolume(node.deps, files, { volumeId, nqn: undefined }, call());
  assert.deepEqual([node.device.connected, node.mapper.maps.size], [false, 0]);
});

/** An encrypted device that holds that. */
function encrypted({ node }: ReturnType<typeof machine>, label = "rds-csi"): void {
  const inner = { ...node.newDevice(), content: "ext4" as const };
  Object.assign(node.device, { content: "luks", luks: { keys: ["passphrase"], label, inner } });
}

Deno.test("detachVolume() disconnects no namespace that is open below the mapping that it has closed", async () => {
  const parts = machine();
  const { node, files } = parts;
  encrypted(parts);
  await attach(parts, { passphrase: "passphrase" });
  node.after = (operation) => {
    if (operation === "dmsetup remove") node.holder = { certain: true, description: "process 7 (dd)" };
  };
  await assert.rejects(detachVolume(node.deps, files, subject, call()), fails("in-use", /loop3 is open/));
  assert.deepEqual([node.device.connected, node.mapper.maps.size], [true, 0]);
});

/** What was run on the device besides what only reads it. */
function writers({ node }: ReturnType<typeof machine>): readonly string[] {
  return node.processes.runs.filter(({ tool, options: { args } }) =>
    tool === "cryptsetup" && !["--version", "open", "close"].includes(args[0]!)
  ).map(({ line }) => line);
}

Deno.test("attachVolume() shows an encrypted volume without a passphrase as it is, and opens nothing", async () => {
  const parts = machine();
  encrypted(parts);
  assert.equal(await attach(parts), "/dev/loop3");
  assert.deepEqual([parts.node.mapper.maps.size, parts.node.device.readOnly], [0, true]);
  assert.deepEqual(parts.node.formats, []);
});

Deno.test("attachVolume() with a passphrase refuses a volume without a header, and writes none", async () => {
  for (const content of ["blank", "garbage", "ext4"] as const) {
    const parts = machine();
    parts.node.device.content = content;
    await assert.rejects(
      attach(parts, { passphrase: "passphrase" }),
      fails("precondition", /expected=an undamaged copy/),
    );
    const { device, mapper, formats } = parts.node;
    assert.deepEqual([device.content, device.connected, mapper.maps.size, formats], [content, false, 0, []]);
    assert.deepEqual(writers(parts), []);
  }
});

Deno.test("attachVolume() opens a header of any label for reading only, and never completes or formats it", async () => {
  for (const label of ["rds-csi-unfinished", "somebody"]) {
    const parts = machine();
    encrypted(parts, label);
    await attach(parts, { passphrase: "passphrase" });
    assert.ok(parts.node.cryptsetup.flags.get("rds-csi-pvc-1")!.includes("--readonly"));
    assert.deepEqual([writers(parts), parts.node.device.luks!.label], [[], label]);
  }
});

Deno.test("attachVolume() leaves the mapping to a kubelet that staged the volume meanwhile", async () => {
  const parts = machine();
  const { node } = parts;
  encrypted(parts);
  const { after } = node;
  node.after = (operation, count) => {
    after(operation, count);
    if (operation !== "cryptsetup open") return;
    node.paths.nodes.set("/state/volumes", { kind: "directory" });
    node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "half" });
  };
  const request = { subject: { volumeId, nqn }, address: "a", port: 1, sizeBytes: 0n, existing: false };
  await assert.rejects(
    attachVolume(
      node.deps,
      parts.files,
      { ...request, passphrase: "passphrase" },
      () => Promise.reject(new VolumeError("cancelled", "stopped")),
      call(),
    ),
    (error) => VolumeError.is(error),
  );
  assert.deepEqual([node.mapper.maps.size, node.device.connected], [1, true]);
});

Deno.test("readPassphrase() takes the standard input byte for byte, and refuses what is none", async () => {
  const text = "correct horse battery staple";
  const read = async (input: string) => {
    const { io, err } = fakeCommandIo();
    return [await readPassphrase({ ...io, input: () => Promise.resolve(input) }), err.length];
  };
  assert.deepEqual(await read(text), [text, 0]);
  assert.deepEqual(await read(`${text}\n`), [`${text}\n`, 1]);
  for (const wrong of ["", "short", `${text}\uFFFD`]) {
    await assert.rejects(read(wrong), (error) => {
      assert.ok(!String(error).includes(text));
      return fails("invalid", /the standard input because it/)(error);
    });
  }
});

Deno.test("detachVolume() removes an unused map whose state file is lost, and none that is in use", async () => {
  const { node, files } = machine();
  await node.stage({ volumeContext: { deviceLayer: "multipath" } });
  node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
  node.table = [];
  const { minor } = [...node.mapper.maps.values()][0]!;
  node.held.add(`253:${minor}`);
  await assert.rejects(detachVolume(node.deps, files, subject, call()), fails("in-use"));
  assert.deepEqual([node.device.connected, node.mapper.maps.size], [true, 1]);
  node.held.clear();
  await detachVolume(node.deps, files, subject, call());
  assert.deepEqual([node.device.connected, node.mapper.maps.size], [false, 0]);
});
