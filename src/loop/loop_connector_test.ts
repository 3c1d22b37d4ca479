import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakePaths } from "../../tests/fakes/paths.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "../../tests/fakes/processes.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { Target } from "../volume/ports/node_ports.ts";
import { LoopConnector, parseAttachment } from "./loop_connector.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal };
const nqn = "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d";
const target: Target = { nqn, addresses: ["127.0.0.1"], port: 4420 };

/** A fake of the kernel's loop devices. */
class Deps {
  readonly processes = new FakeProcesses();
  readonly files = new FakeKernelFiles();
  readonly paths = new FakePaths();
  readonly clock = new FakeClock();
  readonly connector: LoopConnector;
  #sequence = 10;
  /** Called before losetup does its work; its result, if any, replaces the tool's. */
  script: (run: RecordedRun) => Scripted | undefined = () => undefined;

  constructor() {
    this.connector = new LoopConnector({
      backingPath: "/backing",
      statePath: "/state/loop",
      processes: this.processes,
      files: this.files,
      paths: this.paths,
      clock: this.clock,
    });
    this.processes.script = (run) => this.script(run) ?? this.#kernel(run);
    for (const path of ["/backing", "/backing/exports", "/backing/files"]) {
      this.paths.nodes.set(path, { kind: "directory" });
    }
    this.export(nqn, "/backing/files/pvc-1.img");
  }

  export(nqn: string, file: string) {
    this.paths.nodes.set(file, { kind: "file", text: "" });
    this.paths.nodes.set(`/backing/exports/${nqn}`, { kind: "link", to: file });
  }

  withdraw(nqn: string) {
    this.paths.nodes.delete(`/backing/exports/${nqn}`);
  }

  attach(device: string, file: string) {
    this.files.texts.set(`/sys/block/${device}/loop/backing_file`, file);
    this.files.texts.set(`/sys/block/${device}/diskseq`, String(this.#sequence++));
    this.files.texts.set(`/sys/block/${device}/dev`, `7:${device.slice(4)}`);
    this.files.texts.set(`/sys/block/${device}/size`, "2048");
  }

  detach(device: string) {
    this.files.texts.delete(`/sys/block/${device}/loop/backing_file`);
  }

  attached(device: string) {
    return this.files.texts.get(`/sys/block/${device}/loop/backing_file`);
  }

  #kernel({ tool, options: { args } }: RecordedRun): Scripted {
    if (tool !== "losetup") return 0;
    if (args[0] === "-f") {
      const free = Array.from({ length: 9 }, (_, i) => `loop${i}`).find((name) => !this.attached(name))!;
      return { stdout: `/dev/${free}\n` };
    }
    if (args[0] === "-d") this.detach(args[1]!.slice(5));
    else if (args[0] !== "-c") this.attach(args[0]!.slice(5), args[1]!);
    return 0;
  }
}

Deno.test("connect() attaches the exported file, and find() describes the device", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  assert.deepEqual(await deps.connector.find(nqn), {
    path: "/dev/loop0",
    deviceNumber: "7:0",
    sizeBytes: 1048576n,
    nqn,
    nsid: 1,
    uniqueId: "",
  });
  assert.deepEqual(await deps.connector.connected(), [nqn]);
  assert.deepEqual(await deps.connector.live(), new Set([nqn]));
  const connections = await deps.connector.connections(nqn);
  assert.deepEqual(await deps.connector.allConnections(), new Map([[nqn, connections]]));
  assert.deepEqual(await deps.connector.allDevices(), new Map([[nqn, await deps.connector.find(nqn)]]));
});

Deno.test("connect() throws unavailable once the export is withdrawn, although the device is still attached", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.withdraw(nqn);
  await assert.rejects(deps.connector.connect(target, context), refusal("unavailable"));
  assert.equal((await deps.connector.find(nqn))?.path, "/dev/loop0");
});

Deno.test("connect() replaces a device whose file was deleted and made again", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.files.texts.set("/sys/block/loop0/loop/backing_file", "/backing/files/pvc-1.img (deleted)");
  await deps.connector.connect(target, context);
  assert.ok(deps.processes.lines.includes("losetup -d /dev/loop0"));
  assert.equal(deps.attached("loop0"), "/backing/files/pvc-1.img");
});

Deno.test("connect() takes another device when another program was quicker", async () => {
  const deps = new Deps();
  let raced = false;
  deps.script = ({ options: { args } }) => {
    if (raced || args[0] !== "/dev/loop0") return undefined;
    raced = true;
    deps.attach("loop0", "/somebody/else.img");
    return { code: 1, stderr: "losetup: failed to set up loop device: Device or resource busy" };
  };
  const connecting = deps.connector.connect(target, context);
  await deps.clock.advance(1000);
  await connecting;
  assert.equal((await deps.connector.find(nqn))?.path, "/dev/loop1");
});

Deno.test("connect() gives up after so many races, and forgets", async () => {
  const deps = new Deps();
  deps.script = ({ options: { args } }) =>
    args[0]!.startsWith("/dev/") ? { code: 1, stderr: "busy" } : undefined;
  const rejected = assert.rejects(deps.connector.connect(target, context), refusal("unavailable"));
  await deps.clock.advance(60_000);
  await rejected;
  assert.deepEqual(await deps.paths.list("/state/loop"), []);
});

Deno.test("find() is undefined when the device was given to another file", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.detach("loop0");
  assert.equal(await deps.connector.find(nqn), undefined);
  deps.attach("loop0", "/somebody/else.img");
  assert.equal(await deps.connector.find(nqn), undefined);
});

Deno.test("find() is undefined when another node attached the same file to the same device", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.detach("loop0");
  deps.attach("loop0", "/backing/files/pvc-1.img");
  assert.equal(await deps.connector.find(nqn), undefined);
});

Deno.test("disconnect() flushes, detaches and forgets, also when the export is gone", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.withdraw(nqn);
  await deps.connector.disconnect(nqn, context);
  assert.deepEqual(deps.processes.lines.slice(-2), [
    "blockdev --flushbufs --setrw /dev/loop0",
    "losetup -d /dev/loop0",
  ]);
  assert.deepEqual(await deps.connector.connected(), []);
  assert.deepEqual(await deps.paths.list("/state/loop"), []);
});

Deno.test("disconnect() detaches although the flush fails", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.script = ({ tool }) => tool === "blockdev" ? { code: 1, stderr: "Input/output error" } : undefined;
  await deps.connector.disconnect(nqn, context);
  assert.equal(deps.attached("loop0"), undefined);
});

Deno.test("disconnect() throws in-use when the device does not go, and remembers it", async () => {
  const deps = new Deps();
  await deps.connector.connect(target, context);
  deps.script = ({ options: { args } }) => args[0] === "-d" ? 0 : undefined;
  const rejected = assert.rejects(deps.connector.disconnect(nqn, context), refusal("in-use"));
  await deps.clock.advance(10_000);
  await rejected;
  assert.deepEqual(await deps.connector.connected(), [nqn]);
});

for (const bad of ["nqn.", "nqn.a/b", "../x", "", "nqn.\0"]) {
  Deno.test(`connect() throws invalid for the NQN ${JSON.stringify(bad)}`, async () => {
    const deps = new Deps();
    await assert.rejects(deps.connector.connect({ ...target, nqn: bad }, context), refusal("invalid"));
  });
}

for (const text of ["", "{", "[]", '{"backing":"x","device":"loop0"}', '{"backing":"/x","device":"sda"}']) {
  Deno.test(`parseAttachment() throws precondition for ${text}`, () => {
    assert.throws(() => parseAttachment(text, "/f"), refusal("precondition"));
  });
}
