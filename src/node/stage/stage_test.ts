import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  call,
  ext4,
  type FakeDevice,
  FakeNode,
  injected,
  nqn,
  sizeBytes,
  stagingPath,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";

/** The changing operations of a whole stage, in order. */
async function operationsOf(capability: Capability): Promise<readonly string[]> {
  const node = new FakeNode();
  await node.stage({ capability });
  return node.operations;
}

function assertNothingLeft(node: FakeNode, where: string): void {
  assert.deepEqual(node.table, [], where);
  assert.equal(node.device.connected, false, where);
  assert.equal(node.paths.nodes.has(stagingPath), false, where);
  assert.equal(node.stagingState, undefined, where);
}

const fresh = () => Promise.resolve(new FakeNode());

for (const capability of [ext4, block]) {
  const kind = capability.access;

  Deno.test(`stage() of a ${kind} volume writes its state before it connects`, async () => {
    const node = new FakeNode();
    let known = false;
    node.before = (operation) => {
      if (operation === "connect") known = node.stagingState?.nqn === nqn;
    };
    await node.stage({ capability });
    assert.ok(known);
    assert.equal(node.stagingState?.staged, true);
  });

  Deno.test(`stage() of a ${kind} volume that fails at any step leaves nothing, and the retry succeeds`, async () => {
    const attempt = (node: FakeNode) => node.stage({ capability });
    await breakEachStep(fresh, attempt, async (node, step) => {
      assertNothingLeft(node, step);
      await node.stage({ capability });
      assert.equal(node.stagingState?.staged, true);
    });
  });

  Deno.test(`stage() of a ${kind} volume that is cancelled at any step leaves nothing, and the retry succeeds`, async () => {
    const operations = await operationsOf(capability);
    for (let cancelling = 1; cancelling < operations.length; cancelling++) {
      const node = new FakeNode();
      const controller = new AbortController();
      const reason = new VolumeError("cancelled", "gone");
      node.after = (_, count) => {
        if (count >= cancelling) controller.abort(reason);
      };
      const attempt = node.service.stage(node.stageRequest({ capability }), call(controller.signal));
      await attempt.then(() => {}, (error) => assert.equal(error, reason, operations[cancelling - 1]));
      if (node.stagingState?.staged !== true) assertNothingLeft(node, operations[cancelling - 1]!);
      node.after = () => {};
      await node.stage({ capability });
      assert.equal(node.stagingState?.staged, true);
      assert.ok(node.formats.length <= 1);
    }
  });

  for (const next of ["stage", "unstage"] as const) {
    Deno.test(`${next}() of a ${kind} volume succeeds after a crash at any step of staging`, async () => {
      const check = async (node: FakeNode, step: string) => {
        if (next === "unstage") {
          await node.unstage();
          assert.deepEqual([node.table, node.device.connected], [[], false]);
          assert.equal(node.stagingState, undefined);
        }
        await node.stage({ capability });
        assert.equal(node.stagingState?.staged, true, step);
        assert.ok(node.formats.length <= 1);
        await node.unstage();
        assert.equal(node.stagingState, undefined);
      };
      await breakEachStep(fresh, (node) => node.stage({ capability }), check, "crashes");
    });
  }

  Deno.test(`stage() of a ${kind} volume undoes in reverse`, async () => {
    const node = new FakeNode();
    const last = (await operationsOf(capability)).length;
    node.before = (_, count) => {
      if (count === last) throw injected;
    };
    await assert.rejects(node.stage({ capability }), (error) => error === injected);
    const undone = node.operations.slice(last).map((operation) => operation.split(" ")[0]);
    const expected = kind === "block"
      ? ["removeFile", "disconnect", "removeEmptyFolder", "removeFile"]
      : ["unmount", "disconnect", "removeEmptyFolder", "makeFolder", "writeFile", "removeFile"];
    assert.deepEqual(undone, expected);
  });

  Deno.test(`stage() of a ${kind} volume a second time verifies and changes nothing`, async () => {
    const node = new FakeNode();
    await node.stage({ capability });
    const first = node.operations.length;
    await node.stage({ capability });
    const again = node.operations.slice(first).map((operation) => operation.split(" ")[0]);
    assert.deepEqual(
      new Set(again),
      new Set(["connect", "setReadOnly", "makeFolder", "writeFile", ...(kind === "block" ? [] : ["grow"])]),
    );
    assert.equal(node.formats.length, kind === "block" ? 0 : 1);
  });

  Deno.test(`stage() of a ${kind} volume that fails when it was staged before undoes nothing of the first stage`, async () => {
    const node = new FakeNode();
    await node.stage({ capability });
    const first = node.operations.length;
    const table = [...node.table];
    node.before = (_, count) => {
      if (count === first + 2) throw injected;
    };
    await assert.rejects(node.stage({ capability }), unsettled("internal", /injected/));
    assert.deepEqual(node.table, table);
    assert.equal(node.device.connected, true);
    assert.equal(node.stagingState?.staged, true);
  });
}

Deno.test("stage() throws unavailable and keeps its state when it cannot disconnect", async () => {
  const node = new FakeNode();
  node.before = (operation) => {
    if (operation === "probe" || operation === "disconnect") throw injected;
  };
  await assert.rejects(node.stage(), refusal("unavailable", /could not be undone: disconnect/));
  assert.equal(node.stagingState?.nqn, nqn);
});

const mismatches: readonly [string, Partial<FakeDevice>][] = [
  ["smaller than published", { sizeBytes: sizeBytes - 512n }],
  ["of another namespace", { nsid: 2 }],
];

for (const [name, change] of mismatches) {
  Deno.test(`stage() throws identity-mismatch for a device ${name}, before anything is done to it`, async () => {
    const node = new FakeNode();
    Object.assign(node.device, change);
    await assert.rejects(node.stage(), refusal("identity-mismatch"));
    assertNothingLeft(node, name);
    for (const operation of ["probe", "setReadOnly", "format"]) {
      assert.ok(!node.operations.includes(operation));
    }
  });
}

Deno.test("stage() throws identity-mismatch when the device's name leads to another device", async () => {
  const node = new FakeNode();
  node.after = (operation) => {
    if (operation === "connect") node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:4" });
  };
  await assert.rejects(node.stage(), refusal("identity-mismatch"));
});

for (const at of ["probe", "writeFile /state/volumes/pvc-1.json"]) {
  Deno.test(`stage() formats nothing when the device becomes another one at ${at}`, async () => {
    const node = new FakeNode();
    node.before = (operation) => {
      if (operation === at && node.device.connected) {
        node.device.deviceNumber = "7:9";
        node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:9" });
      }
    };
    await assert.rejects(node.stage(), refusal("identity-mismatch"));
    assert.equal(node.formats.length, 0);
  });
}

Deno.test("stage() mounts nothing when the device becomes another one while it is checked", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  node.after = (operation) => {
    if (operation === "check") node.device.deviceNumber = "7:9";
  };
  await assert.rejects(node.stage(), refusal("identity-mismatch"));
  assert.ok(!node.operations.includes("mountDevice"));
});

Deno.test("stage() formats nothing where it mounted a file system before in the same epoch", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  node.table = [];
  node.device.content = "blank";
  await assert.rejects(node.stage(), unsettled("precondition", /used here before, and holds no ext4/));
  assert.equal(node.formats.length, 0);
});

Deno.test("stage() waits for a device that appears late", async () => {
  const node = new FakeNode();
  const { find } = node.deps.connector;
  let reads = 0;
  node.deps.connector.find = (nqn, context) => ++reads < 5 ? Promise.resolve(undefined) : find(nqn, context);
  const staging = node.stage();
  await node.clock.advance(10_000);
  await staging;
  assert.ok(reads >= 5);
});

Deno.test("stage() throws unavailable when the device does not appear, and disconnects", async () => {
  const node = new FakeNode();
  node.deps.connector.find = () => Promise.resolve(undefined);
  const rejected = assert.rejects(node.stage(), refusal("unavailable", /does not appear/));
  await node.clock.advance(120_000);
  await rejected;
  assertNothingLeft(node, "find");
});

Deno.test("stage() formats a blank device of a volume that was never written, lazily, with label and options", async () => {
  const node = new FakeNode();
  await node.stage({ volumeContext: { fsLabel: "data", mkfsOptions: "-I 512" } });
  assert.deepEqual(node.formats, [{ filesystem: "ext4", label: "data", extra: ["-I", "512"], lazy: true }]);
  assert.equal(node.paths.nodes.get(stagingPath)?.mode, 0o777);
});

const errorCases: readonly [string, Record<string, string>, readonly string[], Record<string, string>][] = [
  ["errors=continue", { mkfsOptions: "-e continue" }, [], {}],
  ["errors=remount-ro", { mkfsOptions: "-e panic" }, [], {}],
  ["errors=remount-ro", { mkfsOptions: "-e continue" }, ["errors=remount-ro"], {}],
  ["", { mkfsOptions: "-I 512" }, [], {}],
  ["", { mkfsOptions: "-e continue" }, [], { readonly: "true" }],
];

for (const [flags, volumeContext, mountFlags, context] of errorCases) {
  const given = JSON.stringify([volumeContext, mountFlags, context]);
  Deno.test(`stage() passes "${flags}" to the mount for ${given}`, async () => {
    const node = new FakeNode();
    if (context["readonly"] !== undefined) node.device.content = "ext4";
    const { mountDevice } = node.deps.mounts;
    const seen: string[] = [];
    node.deps.mounts.mountDevice = (device, target, filesystem, options, call) => {
      seen.push(options.flags.join(","));
      return mountDevice(device, target, filesystem, options, call);
    };
    await node.stage({ volumeContext, mountFlags }, context);
    assert.deepEqual(seen, [flags]);
  });
}

Deno.test("stage() that may not format gives the owner of the claim the command that allows it in the next epoch", async () => {
  const node = new FakeNode();
  const context = { mayFormat: "false", claim: "apps/data" };
  const command =
    /kubectl annotate --overwrite -n apps pvc data rds[.]csi[.]srvlab[.]io\/allow-format=pvc-1@2$/;
  await assert.rejects(node.stage({}, context), refusal("precondition", command));
  assert.deepEqual(node.formats, []);
});

const written = /rds-csi allow-format pvc-1$/;
const onlyRead = /let a pod write to it first$/;
const refusals: readonly [string, RegExp, Record<string, string>, Capability][] = [
  ["nothing, though it was written before", written, { mayFormat: "false" }, ext4],
  ["nothing, to be used read-only", onlyRead, { readonly: "true" }, ext4],
  ["nothing, to be read by many", onlyRead, {}, { ...ext4, mode: "multi-node-reader-only" }],
];

for (const [name, said, context, capability] of refusals) {
  Deno.test(`stage() refuses to format a device with ${name}`, async () => {
    const node = new FakeNode();
    node.device.content = "blank";
    await assert.rejects(node.stage({ capability }, context), refusal("precondition", said));
    assert.equal(node.formats.length, 0);
    assertNothingLeft(node, name);
    assert.equal(node.stagingState, undefined);
  });
}

Deno.test("stage() checks a file system before it mounts it, unless checks are off or it is read-only", async () => {
  const checks = async (change: Record<string, string>, context: Record<string, string> = {}) => {
    const node = new FakeNode();
    node.device.content = "ext4";
    await node.stage({ volumeContext: change }, context);
    assert.equal(node.formats.length, 0);
    assert.equal(node.paths.nodes.get(stagingPath)?.mode, 0o750);
    return node.operations.filter((operation) => ["check", "mountDevice"].includes(operation));
  };
  assert.deepEqual(await checks({}), ["check", "mountDevice"]);
  assert.deepEqual(await checks({ fsckMode: "off" }), ["mountDevice"]);
  assert.deepEqual(await checks({}, { readonly: "true" }), ["mountDevice"]);
});

Deno.test("stage() needs no check of a file system that is in use, unless a process has the device open", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  node.deps.filesystems.check = () => Promise.reject(new VolumeError("in-use", "Cannot check: in use"));
  node.holder = { certain: true, description: "process 7 (e2fsck)" };
  await assert.rejects(node.stage(), refusal("in-use", /Cannot check/));
  assert.equal(node.operations.includes("mountDevice"), false);
  node.holder = undefined;
  await node.stage();
  assert.equal(node.stagingState?.staged, true);
});

Deno.test("stage() of a read-only volume makes the device read-only first, and never grows it", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage({}, { readonly: "true" });
  assert.equal(node.device.readOnly, true);
  assert.deepEqual(node.table[0]?.superOptions, ["ro"]);
  assert.ok(node.operations.indexOf("setReadOnly") < node.operations.indexOf("probe"));
  assert.ok(!node.operations.includes("grow"));
});

Deno.test("stage() replaces what an earlier device of the volume left mounted", async () => {
  const node = new FakeNode();
  await node.stage();
  Object.assign(node.device, { deviceNumber: "7:8", path: "/dev/loop8" });
  await node.stage();
  assert.deepEqual(node.table.map((entry) => entry.deviceNumber), ["7:8"]);
});

Deno.test("stage() throws in-use when what an earlier device left is still published", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  Object.assign(node.device, { deviceNumber: "7:8", path: "/dev/loop8" });
  await assert.rejects(node.stage(), unsettled("in-use", /is mounted at/));
  assert.equal(node.table.length, 2);
});

Deno.test("stage() leaves another device at the staging path alone", async () => {
  const node = new FakeNode();
  node.addMount("8:1", stagingPath);
  await assert.rejects(node.stage(), unsettled("precondition", /something else/));
  assert.equal(node.table.length, 1);
});

Deno.test("stage() that is refused leaves a device that a person attached to look at it as it was", async () => {
  const node = new FakeNode();
  Object.assign(node.device, { connected: true, content: "ext4", readOnly: true });
  node.showDevices();
  node.addMount("7:3", "/mnt/rescue");
  await assert.rejects(node.stage(), unsettled("in-use", /is mounted at .*rescue/));
  assert.deepEqual([node.device.readOnly, node.device.connected, node.stagingState], [true, true, undefined]);
  assert.ok(!node.operations.includes("probe"));
});

const later = { epoch: "2-ffffffff", nqn: "nqn.2000-02.com.mikrotik:pvc-1:2-ffffffff", mayFormat: "false" };

/** A staged volume that was withdrawn and exported again. */
async function reexported(): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage();
  node.device.exported = false;
  node.devices.set(later.nqn, node.newDevice({ path: "/dev/loop4", deviceNumber: "7:4", content: "ext4" }));
  return node;
}

Deno.test("stage() of another epoch throws in-use while the old one is published, and changes nothing", async () => {
  const node = await reexported();
  await node.publish();
  const before = node.operations.length;
  await assert.rejects(node.stage({}, later), unsettled("in-use"));
  assert.equal(node.operations.length, before);
});

Deno.test("stage() of another epoch takes down what is connected without state", async () => {
  const node = await reexported();
  node.table = [];
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  await node.stage({}, later);
  assert.equal(node.device.connected, false);
});

Deno.test("stage() of another epoch that fails at any step succeeds when it is tried again", async () => {
  await breakEachStep(reexported, (node) => node.stage({}, later), async (node, step) => {
    await node.stage({}, later);
    assert.deepEqual(node.table.map((entry) => entry.deviceNumber), ["7:4"], step);
    assert.deepEqual([node.device.connected, node.stagingState?.epoch, node.stagingState?.filesystem], [
      false,
      later.epoch,
      "none",
    ]);
  });
});

Deno.test("stage() refuses a volume that was published to another machine of the same name, and touches nothing", async () => {
  for (const capability of [ext4, block]) {
    const node = new FakeNode();
    node.machine = "0a0b0c0d";
    const elsewhere = { machine: "ffffffff" };
    const another = refusal("precondition", /published to another machine.*node=node-1/);
    await assert.rejects(node.stage({ capability }, elsewhere), another);
    assert.deepEqual([node.operations, node.stagingState], [[], undefined]);
    await node.stage({ capability }, { machine: "0a0b0c0d" });
    const before = node.operations.length;
    const still = unsettled("precondition", /published to another machine.*node=node-1/);
    await assert.rejects(node.stage({ capability }, elsewhere), still);
    assert.equal(node.operations.length, before, "what is staged stays");
  }
});

Deno.test("stage() compares no machine where either side does not know it", async () => {
  const unknown = new FakeNode();
  await unknown.stage({}, { machine: "ffffffff" });
  const old = new FakeNode();
  old.machine = "0a0b0c0d";
  await old.stage();
  assert.deepEqual([unknown.stagingState?.staged, old.stagingState?.staged], [true, true]);
});
