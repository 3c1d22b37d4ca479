import assert from "node:assert/strict";
import { type FakeController } from "../../../tests/fakes/nvme_kernel.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import type { MissingPath, Target } from "../../volume/ports/node_ports.ts";

import { Deps as Kernel, host, prefix } from "../../../tests/support/kernel_connector.ts";

const nqn = `${prefix}:pvc-1:1-0a0b0c0d`;
const other = `${prefix}:pvc-2:1-00000000`;
const [A, B] = ["10.0.0.1", "10.0.0.2"] as const;
const target: Target = { nqn, addresses: [A], port: 4420 };
const two: Target = { ...target, addresses: [A, B] };
const ours = { nqn, address: A, ...host };

/** A connector on a fake kernel; `connect()` uses the default target unless the test passes another. */
class Deps extends Kernel {
  override connect(to: Target = target): Promise<readonly MissingPath[]> {
    return super.connect(to);
  }
}

for (const multipath of [true, false]) {
  const layout = multipath ? "with paths joined" : "with a device for each path";

  Deno.test(`connect() connects, and find() finds the namespace, ${layout}`, async () => {
    const deps = new Deps(multipath);
    deps.serves = () => [{ uuid: "0A0B0C0D-0000-4000-8000-000000000001", sectors: 4096 }];
    deps.add({ nqn: other });
    await deps.connect();
    const found = await deps.connector.find(nqn);
    const { minor } = deps.namespaces.find((one) => one.nqn === nqn)!;
    assert.match(found?.path ?? "", /^\/dev\/nvme[0-9]+n[0-9]+$/);
    assert.deepEqual({ ...found, path: "" }, {
      path: "",
      deviceNumber: `259:${minor}`,
      sizeBytes: 2_097_152n,
      nqn,
      nsid: 1,
      uniqueId: "0a0b0c0d000040008000000000000001",
    });
  });

  Deno.test(`find() returns no other subsystem's device, whatever came and went before, ${layout}`, async () => {
    const deps = new Deps(multipath);
    const nqns = [nqn, other, `${nqn}0`, `${prefix}:pvc-1`, "nqn.2024-01.com.example:pvc-1"];
    let seed = 11;
    const draw = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % below;
    for (let step = 0; step < 400; step++) {
      const one = nqns[draw(nqns.length)]!;
      const there = deps.controllers.some((controller) => controller.nqn === one);
      if (!there) deps.add({ nqn: one });
      else if (draw(3) === 0) deps.set(deps.controllers[draw(deps.controllers.length)]!, "connecting");
      else deps.remove(one);
      const all = await deps.connector.allDevices();
      for (const asked of nqns) {
        const found = await deps.connector.find(asked);
        assert.deepEqual(all.get(asked), asked.startsWith(`${prefix}:`) ? found : undefined);
        const own = deps.namespaces.find((namespace) => namespace.nqn === asked);
        assert.equal(found?.nqn ?? asked, asked);
        assert.equal(found?.deviceNumber, own && `259:${own.minor}`);
      }
    }
  });

  Deno.test(`find() returns no device of a subsystem that takes over the names at any moment, ${layout}`, async () => {
    for (let moment = 1;; moment++) {
      const deps = new Deps(multipath);
      deps.serves = () => [{ uuid: "0A0B0C0D-0000-4000-8000-000000000001" }];
      deps.add(ours);
      const own = await deps.connector.find(nqn);
      const { texts } = deps.files;
      let reads = 0;
      deps.files.readText = (path) => {
        if (++reads === moment) {
          for (const [key, text] of texts) {
            if (text === nqn) texts.set(key, other);
            if (key.endsWith("/dev")) texts.set(key, "259:99");
            if (key.endsWith("/size")) texts.set(key, "8192");
            if (key.endsWith("/uuid")) texts.set(key, "0f0f0f0f-0000-4000-8000-000000000002");
          }
        }
        return texts.get(path);
      };
      const found = await deps.connector.find(nqn);
      if (reads < moment) break;
      if (found !== undefined) assert.deepEqual(found, own, String(moment));
    }
  });

  Deno.test(`find() throws identity-mismatch for two namespaces, ${layout}`, async () => {
    const deps = new Deps(multipath);
    deps.serves = () => [{}, {}];
    deps.add(ours);
    await assert.rejects(deps.connector.find(nqn), refusal("identity-mismatch", /nsid 1\).*nsid 2/));
  });

  Deno.test(`find() is undefined while the namespace has no size, or is not there, ${layout}`, async () => {
    const deps = new Deps(multipath);
    deps.add(ours);
    deps.namespaces[0]!.sectors = 0;
    deps.show();
    assert.equal(await deps.connector.find(nqn), undefined);
    deps.namespaces.splice(0);
    deps.show();
    assert.equal(await deps.connector.find(nqn), undefined);
  });
}

Deno.test("find() throws identity-mismatch for two connections with a device each", async () => {
  const deps = new Deps(false);
  deps.add(ours);
  deps.add({ ...ours, address: B });
  // Each controller shows its own device; the fake gives both the same number.
  await assert.rejects(deps.connector.find(nqn), refusal("identity-mismatch", /has several/));
});

Deno.test("find() ignores a head that lost its last path and stays only because it is open", async () => {
  const deps = new Deps();
  deps.add(ours);
  const folder = deps.files.folders.get("/sys/class/nvme-subsystem/nvme-subsys0")!;
  deps.files.folders.set("/sys/class/nvme-subsystem/nvme-subsys0", [...folder, "nvme0n99"]);
  deps.files.texts.set("/sys/class/nvme-subsystem/nvme-subsys0/nvme0n99/dev", "259:99");
  deps.files.texts.set("/sys/class/nvme-subsystem/nvme-subsys0/nvme0n99/size", "2048");
  deps.files.texts.set("/sys/class/nvme-subsystem/nvme-subsys0/nvme0n99/nsid", "1");
  assert.equal((await deps.connector.find(nqn))?.deviceNumber, `259:${deps.namespaces[0]!.minor}`);
});

Deno.test("find() prefers the NGUID, and treats an all-zero id as none", async () => {
  const deps = new Deps();
  const zeros = "00000000-0000-0000-0000-000000000000";
  const uuid = "0a0b0c0d-0000-4000-8000-000000000001";
  deps.serves = (one) =>
    one === nqn ? [{ nguid: "ABCDEF00-0000-0000-0000-000000000009", uuid }] : [{ nguid: zeros, uuid: zeros }];
  deps.add(ours);
  deps.add({ nqn: other });
  assert.equal((await deps.connector.find(nqn))?.uniqueId, "abcdef00000000000000000000000009");
  assert.equal((await deps.connector.find(other))?.uniqueId, "");
});

Deno.test("connect() passes the host identity and the time limits", async () => {
  const deps = new Deps();
  await deps.connect({ ...target, ctrlLossTmo: -1, keepAliveTmo: 7, nrIoQueues: 2, fastIoFailTmo: 30 });
  await deps.connect({ ...target, nqn: other });
  const whom = `hostnqn=${host.hostNqn},hostid=${host.hostId}`;
  const line = "dd of=/dev/nvme-fabrics bs=4096 count=1 iflag=fullblock conv=nocreat,notrunc status=none";
  assert.deepEqual(deps.processes.lines, [line, line]);
  assert.deepEqual(deps.processes.runs.map(({ options }) => options.input), [
    `transport=tcp,traddr=${A},trsvcid=4420,nqn=${nqn},${whom},ctrl_loss_tmo=-1,reconnect_delay=5,` +
    "keep_alive_tmo=7,nr_io_queues=2",
    `transport=tcp,traddr=${A},trsvcid=4420,nqn=${other},${whom},ctrl_loss_tmo=1800,reconnect_delay=5`,
  ]);
  assert.deepEqual(deps.written, [`/sys/class/nvme/${deps.controllers[0]!.name}/fast_io_fail_tmo=30`]);
});

Deno.test("connect() requests the configured checksums, and no others", async () => {
  const asked = async (digests: Target["digests"]) => {
    const deps = new Deps();
    await deps.connect({ ...target, digests });
    return deps.processes.runs[0]!.options.input!.split(",").filter((option) => option.endsWith("_digest"));
  };
  assert.deepEqual(await asked(["header", "data"]), ["hdr_digest", "data_digest"]);
  assert.deepEqual(await asked(["data"]), ["data_digest"]);
  assert.deepEqual([await asked([]), await asked(undefined)], [[], []]);
});

Deno.test("connect() runs nothing when it is connected already", async () => {
  const deps = new Deps();
  deps.add(ours);
  await deps.connect();
  assert.deepEqual(deps.processes.lines, []);
});

Deno.test("connect() returns with its first path, and addPaths() adds the others where paths are joined", async () => {
  for (const [multipath, expected] of [[true, [A, B]], [false, [A]]] as const) {
    const deps = new Deps(multipath);
    deps.offers = () => [nqn];
    const missing = await deps.connect(two);
    assert.deepEqual(missing, multipath ? [{ address: B, reason: undefined }] : []);
    assert.deepEqual(deps.addresses, [A]);
    assert.deepEqual(await deps.connector.addPaths(two, deps.call), []);
    assert.deepEqual(deps.addresses, expected);
  }
});

Deno.test("connect() continues on one path of two, and warns; addPaths() adds the other one", async () => {
  const deps = new Deps();
  deps.offers = () => [nqn];
  deps.refuse = (address) => address === A ? "Connection timed out" : undefined;
  const [missing] = await deps.connect(two);
  assert.deepEqual([missing?.address, deps.addresses], [A, [B]]);
  assert.match(missing!.reason!, /cannot be reached: .*address=10.0.0.1/);
  assert.match(deps.warnings.join(), /one path of several is missing.*"address":"10.0.0.1"/);
  deps.refuse = () => undefined;
  await deps.connector.addPaths(two, deps.call);
  assert.deepEqual(deps.addresses, [A, B]);
});

Deno.test("connect() takes the second address where paths are not joined and the first refuses", async () => {
  const deps = new Deps(false);
  deps.refuse = (address) => address === A ? "Connection refused" : undefined;
  await deps.inTime(deps.connect(two));
  assert.deepEqual(deps.addresses, [B]);
});

Deno.test("connect() resolves names, and recognises its connection by any spelling of its address", async () => {
  const deps = new Deps();
  deps.names["router"] = ["fd00::1"];
  await deps.connect({ ...target, addresses: ["router"] });
  await deps.connect({ ...target, addresses: ["fd00:0:0:0:0:0:0:1"] });
  assert.deepEqual(deps.addresses, ["fd00::1"]);
  const unknown = deps.connect({ ...target, addresses: ["nowhere"] });
  await assert.rejects(unknown, refusal("unavailable", /name=nowhere: ENOTFOUND/));
});

const refusals: readonly (readonly [said: string, reason: RegExp])[] = [
  ["Connection refused", /no service listens there.*exit=1.*firewall/],
  ["Connection timed out", /cannot be reached/],
  ["No route to host", /cannot be reached/],
  ["Input/output error", /the target refuses.*list of hosts/],
  ["Invalid Data Parameter", /the target refuses/],
  ["Connect command failed, error wrong NQN", /the target refuses/],
  ["Invalid argument", /the kernel refuses/],
  ["Something new", /the kernel fails.*Something new/],
];
for (const [said, reason] of refusals) {
  Deno.test(`connect() throws unavailable for "${said}", and explains it`, async () => {
    const deps = new Deps();
    deps.refuse = () => said;
    await assert.rejects(deps.connect(), refusal("unavailable", reason));
    await assert.rejects(deps.connect(two), refusal("unavailable", /at any address.*10.0.0.1.*10.0.0.2/));
  });
}

Deno.test("connect() throws precondition where the kernel has no initiator, and names the module", async () => {
  const deps = new Deps();
  deps.refuse = () => "Invalid argument";
  deps.files.folders.delete("/sys/module/nvme_tcp");
  await assert.rejects(deps.connect(), refusal("precondition", /nvme_tcp is not loaded.*Talos/));
  deps.files.nodes.delete("/dev/nvme-fabrics");
  await assert.rejects(deps.connect(), refusal("precondition", /no \/dev\/nvme-fabrics/));
});

Deno.test("connect() waits for its own connection to come back", async () => {
  const deps = new Deps();
  const controller = deps.add({ ...ours, state: "connecting" });
  const connecting = deps.connect();
  await deps.clock.advance(10_000);
  deps.set(controller, "live");
  await deps.inTime(connecting);
  assert.deepEqual(deps.processes.lines, []);
});

for (const state of ["connecting", "resetting", "new", "deleting", "deleting (no IO)"]) {
  Deno.test(`connect() throws unavailable shortly before the call's end when it stays ${state}`, async () => {
    const deps = new Deps(true, 5_000);
    deps.add({ ...ours, state });
    const text = new RegExp(`state=${state.replace(/[()]/g, "\\$&")} .*watched for 4 s|5 s`);
    await assert.rejects(deps.inTime(deps.connect()), refusal("unavailable", text));
    assert.ok(deps.clock.now() <= deps.call.deadlineMs! + 1000);
    assert.deepEqual(deps.processes.lines, []);
  });
}

Deno.test("connect() waits until an old connection is deleted, and connects again", async () => {
  const deps = new Deps();
  deps.add({ ...ours, state: "deleting" });
  const connecting = deps.connect();
  await deps.clock.advance(2_000);
  assert.deepEqual(deps.processes.lines, []);
  deps.remove(nqn);
  await deps.inTime(connecting);
  assert.equal(deps.controllers[0]?.state, "live");
});

Deno.test("connect() reads again when another process connected first", async () => {
  const deps = new Deps();
  deps.script = () => {
    deps.script = () => undefined;
    deps.add({ ...ours, state: "live" });
    return { code: 1, stderr: "already connected\n" };
  };
  await deps.inTime(deps.connect());
  assert.deepEqual(deps.processes.lines.length, 1);
});

Deno.test("connect() does not trust a tool that reports a connection", async () => {
  const deps = new Deps(true, 5_000);
  deps.script = () => ({ code: 1, stderr: "already connected\n" });
  await assert.rejects(deps.inTime(deps.connect()), refusal("unavailable", /does not become live/));
});

const foreigners: Readonly<Record<string, Partial<FakeController>>> = {
  "another address": { address: "10.9.9.9" },
  "another port": { port: 4421 },
  "another host NQN": { hostNqn: hostIdentityOf("node-2").hostNqn },
  "another host id": { hostId: hostIdentityOf("node-2").hostId },
  "another transport": { transport: "rdma" },
};
for (const [what, difference] of Object.entries(foreigners)) {
  Deno.test(`connect() replaces a connection with ${what} when nothing uses it`, async () => {
    const deps = new Deps();
    deps.add({ ...ours, ...difference });
    await deps.inTime(deps.connect());
    const [{ address, port, hostNqn, hostId, transport }] = deps.controllers as [FakeController];
    assert.deepEqual([address, port, hostNqn, hostId, transport], [A, 4420, ...Object.values(host), "tcp"]);
  });

  for (const use of ["mounted", "bound", "open"] as const) {
    Deno.test(`connect() throws precondition and keeps one with ${what} that is ${use}`, async () => {
      const deps = new Deps();
      deps.add({ ...ours, ...difference });
      const device = (await deps.connector.find(nqn))!;
      const entry = {
        ...{ mountId: 1, parentId: 0, mountPoint: "/somewhere", mountOptions: [], superOptions: [] },
        ...{ deviceNumber: "0:6", filesystem: "devtmpfs", source: "udev", root: "/" },
      };
      if (use === "mounted") deps.mounts.push({ ...entry, deviceNumber: device.deviceNumber });
      if (use === "bound") deps.mounts.push({ ...entry, root: `${device.path.slice(4)}//deleted` });
      if (use === "open") deps.openBy.set(device.deviceNumber, "process 7 (qemu)");
      await assert.rejects(deps.connect(), refusal("precondition", /in use: .*(at \/somewhere|qemu)/));
      assert.equal(deps.controllers.length, 1);
      assert.deepEqual(deps.processes.lines, []);
    });
  }
}

Deno.test("connected() names this driver's subsystems once, in any state, and no other", async () => {
  const deps = new Deps();
  const own = [{ ...ours, state: "connecting" }, { ...ours, address: B }, { nqn: other, state: "deleting" }];
  // The kernel shows (efault) for a controller whose first connect is under way.
  for (const each of [...own, { nqn: "nqn.2024-01.com.example:x" }, { nqn: "(efault)" }]) deps.add(each);
  assert.deepEqual(await deps.connector.connected(), [nqn, other]);
  assert.deepEqual(await deps.connector.live(), new Set([nqn]));
  const each = [nqn, other].map(async (at) => [at, await deps.connector.connections(at)] as const);
  assert.deepEqual(await deps.connector.allConnections(), new Map(await Promise.all(each)));
});

/** How often /sys is read for all of so many subsystems. */
async function readsOf(subsystems: number, read: (deps: Deps) => Promise<unknown>): Promise<number> {
  const deps = new Deps();
  for (let at = 0; at < subsystems; at++) {
    deps.add({ nqn: `${nqn}-${at}` });
    deps.add({ nqn: `${nqn}-${at}`, address: B });
  }
  const { files } = deps;
  let reads = 0;
  for (const name of ["readText", "list"] as const) {
    const own = files[name].bind(files) as (path: string) => never;
    Object.assign(files, { [name]: (path: string) => (reads++, own(path)) });
  }
  await read(deps);
  return reads;
}

Deno.test("allDevices() finds the devices that find() finds, and leaves doubtful ones and others out", async () => {
  const deps = new Deps();
  for (const each of [ours, { ...ours, address: B }, { nqn: other, state: "connecting" }]) deps.add(each);
  deps.add({ nqn: "nqn.2024-01.com.example:x" });
  const each = [nqn, other].map(async (at) => [at, await deps.connector.find(at)] as const);
  const found = new Map(await Promise.all(each));
  assert.equal([...found.values()].every((device) => device?.deviceNumber !== undefined), true);
  assert.deepEqual(await deps.connector.allDevices(), found);
  deps.files.texts.delete(`/sys/class/nvme/${deps.controllers[2]!.name}/subsysnqn`);
  assert.deepEqual([...(await deps.connector.allDevices()).keys()], [nqn]);
});

Deno.test("allDevices() reads as much for each of a hundred subsystems as for each of ten", async () => {
  const of = (subsystems: number) => readsOf(subsystems, ({ connector }) => connector.allDevices());
  assert.equal(await of(100) - await of(0), 10 * (await of(10) - await of(0)));
});

Deno.test("connections() reports every path", async () => {
  const deps = new Deps();
  const { name } = deps.add({ ...ours, state: "deleting (no IO)" });
  assert.deepEqual(await deps.connector.connections(nqn), [{
    ...{ nqn, name, state: "deleting", stateName: "deleting (no IO)", transport: "tcp" },
    ...{ address: A, port: 4420, ...host },
  }]);
});

Deno.test("rescan() rescans only live controllers, and throws unavailable when there is none", async () => {
  const deps = new Deps();
  const { name } = deps.add(ours);
  const lost = deps.add({ ...ours, address: B, state: "connecting" });
  await deps.connector.rescan(nqn, deps.call);
  assert.deepEqual(deps.processes.lines, [`nvme ns-rescan /dev/${name}`]);
  deps.set(deps.controllers[0]!, "connecting");
  await assert.rejects(deps.connector.rescan(nqn, deps.call), refusal("unavailable", RegExp(lost.name)));
});

Deno.test("obstacle() makes the kernel load the transport, and says what to do where it cannot", async () => {
  const deps = new Deps();
  const { folders, nodes } = deps.files;
  const obstacle = () => deps.connector.obstacle(deps.call);
  assert.equal(await obstacle(), undefined);
  assert.deepEqual(deps.processes.lines, [], "what is there need not be loaded");
  folders.delete("/sys/module/nvme_tcp");
  assert.match(await obstacle() ?? "", /^the module nvme_tcp is not loaded; the host has to load .*modprobe/);
  deps.script = ({ options: { input } }) => {
    assert.equal(input, "transport=tcp,nqn=nqn.2014-08.org.nvmexpress.discovery");
    folders.set("/sys/module/nvme_tcp", []);
    return { code: 1, stderr: "dd: error writing '/dev/nvme-fabrics': Invalid argument" };
  };
  assert.equal(await obstacle(), undefined);
  assert.equal(deps.processes.lines.length, 2);
  folders.delete("/sys/module/nvme_tcp");
  nodes.delete("/dev/nvme-fabrics");
  assert.match(await obstacle() ?? "", /^there is no \/dev\/nvme-fabrics; /);
  assert.equal(deps.processes.lines.length, 2, "there is nothing to write to");
});
