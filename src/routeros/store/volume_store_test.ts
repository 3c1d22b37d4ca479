import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { answering, ended, printFrames, queriesOf } from "../../../tests/fakes/ssh_transport.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import { Session } from "../ssh/session.ts";
import { RouterVolumeStore } from "./volume_store.ts";
import {
  bench,
  diskRow,
  filePrefix,
  fileRow,
  path,
  poolRow,
  pools,
  volume,
} from "../../../tests/support/routeros_store.ts";

const wanted = { id: "s1", filePrefix, folder: "/pool/csi" };
const snapshot = "/pool/csi/snap-1.s0.x.n.1a2b3c4d.img";
const image = { path, directory: false, sizeBytes: 1024n };

Deno.test("view() finds volume, sharers, files and pools, to the letter", async () => {
  const { store, call } = bench({
    disks: [
      poolRow,
      diskRow("s1"),
      diskRow("S1"),
      diskRow("s2", { "file-path": path.slice(1) }),
      diskRow("s3", { "file-path": `/pool/old/${filePrefix}/disk.img` }),
      diskRow("s4", { "file-path": "/pool/csi/s1-1a2b3c4d.img" }),
    ],
    files: [fileRow(path), fileRow("/pool/csi/S1.1a2b3c4d.img"), {
      name: `pool/old/${filePrefix}`,
      type: "directory",
    }],
  });
  assert.deepEqual(await store.view("s1", filePrefix, call()), {
    volume: volume("s1"),
    foreign: undefined,
    sharers: [
      volume("s2", { imagePath: path }),
      volume("s3", { imagePath: `/pool/old/${filePrefix}/disk.img` }),
    ],
    files: [image, { path: `/pool/old/${filePrefix}`, directory: true, sizeBytes: 0n }],
    pools,
    upMs: 86_400_000,
  });
});

Deno.test("every read is refused on RouterOS before 7.21, and says so", async () => {
  const { store, call } = bench({ version: "7.20.8 (long-term)" });
  const reads: readonly (() => Promise<unknown>)[] = [
    () => store.view("s1", filePrefix, call()),
    () => store.createView(undefined, call()),
    () => store.inventory(call()),
    () => store.files("/snap-", call()),
    () => store.state(call()),
    () => store.probe(call()),
  ];
  for (const read of reads) await rejectsWith(read(), "precondition", /version=7\.20\.8 .*needed=7\.21/);
});

Deno.test("inventory() lists everything in one command", async () => {
  const { store, ssh, call } = bench({ disks: [diskRow("s2"), poolRow, diskRow("s1")] });
  assert.deepEqual(await store.inventory(call()), {
    volumes: [volume("s1"), volume("s2")],
    pools,
    upMs: 86_400_000,
  });
  assert.deepEqual(ssh.commands.map(queriesOf), [[
    `/disk print detail as-value proplist=slot,type,size,file-path,comment,nvme-tcp-export,nvme-tcp-server-port,` +
    `mounted,mount-point,fs,fs-label,free,state,nvme-tcp-server-nqn where type="file" or mounted`,
    `/system resource print as-value`,
  ]]);
});

Deno.test("looks at all volumes share those that are as they were, and no other", async () => {
  const { store, held, call } = bench({ disks: [poolRow, diskRow("s1"), diskRow("s2"), diskRow("s3")] });
  const { volumes: before } = await store.inventory(call());
  const changes = [
    { size: 2048 },
    { "file-path": "/pool/csi/other.img" },
    { comment: "a note" },
    { "nvme-tcp-export": true },
    { "nvme-tcp-server-nqn": "nqn.2000-02.com.mikrotik:s2" },
    { "nvme-tcp-server-port": 4420 },
    { mounted: true },
    { "mount-filesystem": true },
  ];
  for (const change of changes) {
    held.disks = [poolRow, diskRow("s1"), diskRow("s2", change), diskRow("s4")];
    const fresh = bench({ disks: held.disks });
    const { volumes: wanted } = await fresh.store.inventory(fresh.call());
    for (const { volumes } of [await store.inventory(call()), await store.createView(undefined, call())]) {
      assert.deepEqual(volumes, wanted);
      assert.equal(volumes[0], before[0]);
      assert.notEqual(volumes[1], before[1]);
    }
  }
});

Deno.test("createView() keeps what was asked for", async () => {
  const folder = { name: "pool/csi", type: "directory" };
  const { store, call } = bench({
    disks: [poolRow, diskRow("s2")],
    files: [
      folder,
      { ...folder, name: "pool/csi2" },
      fileRow(path),
      fileRow(snapshot),
      fileRow("/pool/snapX"),
    ],
  });
  const view = await store.createView(wanted, call());
  assert.deepEqual(view.files.map((file) => file.path), ["/pool/csi", path, snapshot]);
  assert.deepEqual(view.volumes, [volume("s2")]);
});

Deno.test("createView() of nothing shows all disks and snapshots", async () => {
  const { store, ssh, call } = bench({
    disks: [poolRow, diskRow("s2")],
    files: [fileRow(path), fileRow(snapshot)],
  });
  assert.deepEqual(await store.createView(undefined, call()), {
    volumes: [volume("s2")],
    foreign: undefined,
    files: [{ ...image, path: snapshot }],
    pools,
    upMs: 86_400_000,
  });
  assert.doesNotMatch(ssh.commands[0]!, /slot=/);
});

Deno.test("files() gives what holds a part of the path, and the pools", async () => {
  const { store, call } = bench({ files: [fileRow(snapshot), fileRow(path)] });
  assert.deepEqual(await store.files("/snap-1.", call()), {
    files: [{ ...image, path: snapshot }],
    pools,
    upMs: 86_400_000,
  });
});

Deno.test("createView() shows the wanted slot when something else is in it", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s2"), { slot: "s1", type: "hardware" }] });
  const view = await store.createView(wanted, call());
  assert.deepEqual(view.foreign, { id: "s1", kind: "hardware" });
  assert.deepEqual(view.volumes.map(({ id }) => id), ["s2"]);
  assert.equal(ssh.commands.length, 1);
});

Deno.test("inventory() refuses at once a call that is one too many, or that the session would refuse", async () => {
  const { store, call } = bench();
  const joined = Array.from({ length: 1024 }, () => store.inventory(call()));
  await rejectsWith(store.inventory(call()), "unavailable", /1024 calls already wait for the same/);
  await Promise.all(joined);
  const { clock, ssh } = bench();
  const random = new SeededRandom();
  const session = new Session({ transport: ssh, clock, random, maxQueued: 1 });
  const full = new RouterVolumeStore({ session, clock, random });
  const first = full.inventory(call());
  await rejectsWith(full.inventory(call()), "unavailable", /1 commands already wait/);
  await first;
});

Deno.test("inventory() throws unavailable soon when even small parts come cut, and warns once", async () => {
  const { store, ssh, call, clock, warnings } = bench();
  ssh.router = (command) =>
    ended(printFrames(command, (query) => query.startsWith("/disk") ? "[" : "{}").slice(0, 15));
  for (const rounds of [1, 2]) {
    const failure = rejectsWith(store.inventory(call()), "unavailable");
    await clock.advance(60_000);
    await failure;
    assert.ok(ssh.commands.length < rounds * 30, `${ssh.commands.length} commands`);
  }
  assert.equal(warnings.length, 1);
});

Deno.test("probe() reads packages once a connection, and rests for some seconds", async () => {
  const { store, ssh, call, clock } = bench();
  await store.probe(call());
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2]);
  assert.equal(store.routerInfo?.version, "7.24.4 (stable)");
  await clock.advance(5000);
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2, 1]);
  ssh.drop();
  await clock.advance(0);
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2, 1, 2]);
});

Deno.test("a router that cannot be used is reported once a connection, and no other failure is", async () => {
  const reported: string[] = [];
  const observer = { unfit: (message: string) => reported.push(message) };
  const { store, ssh, call, held, clock, replies } = bench({ version: "7.1 (stable)" }, { observer });
  for (let round = 0; round < 2; round++) await rejectsWith(store.probe(call()), "precondition");
  assert.equal(reported.length, 1);
  ssh.drop();
  await clock.advance(0);
  await rejectsWith(store.probe(call()), "precondition");
  assert.equal(reported.length, 2);
  held.version = "7.24.4 (stable)";
  replies.push(answering(() => '{"version":"oops"}'));
  ssh.drop();
  await clock.advance(0);
  await rejectsWith(store.probe(call()), "unavailable");
  assert.equal(reported.length, 2);
});

Deno.test("the first answer of a router that has booted since the last one is reported, with any read, and no other", async () => {
  let boots = 0;
  const { store, ssh, call, held, clock } = bench({}, { observer: { booted: () => void boots++ } });
  const reconnected = async (uptime: string) => {
    ssh.drop();
    held.uptime = uptime;
    await clock.advance(60_000);
  };
  await store.view("s1", filePrefix, call());
  await reconnected("1d00:00:58");
  await store.probe(call());
  assert.equal(boots, 0, "a lost connection is no boot, and routers print whole seconds");
  await reconnected("00:00:20");
  await store.probe(call());
  assert.equal(boots, 1);
  await store.inventory(call());
  await reconnected("00:01:20");
  await store.state(call());
  assert.equal(boots, 1);
  await reconnected("00:01:30");
  await store.inventory(call());
  assert.equal(boots, 2, "a router may be up for longer than when it was asked last");
});
