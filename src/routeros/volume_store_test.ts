import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import {
  answering,
  ended,
  type FakeRouter,
  FakeSshTransport,
  printFrames,
  queriesOf,
  statementsOf,
  torn,
} from "../../tests/fakes/ssh_transport.ts";
import { VolumeError, type VolumeErrorKind } from "../volume/errors.ts";
import { Session } from "./session.ts";
import { RouterVolumeStore } from "./volume_store.ts";

const path = "/pool/csi/s1.img";
const poolRow = {
  slot: "raid1",
  type: "raid",
  mounted: true,
  "mount-point": "pool",
  fs: "btrfs",
  size: 100,
  free: 40,
};
const pools = [{ mountPoint: "pool", filesystem: "btrfs", sizeBytes: 100n, freeBytes: 40n }];

function diskRow(slot: string, more: object = {}): object {
  return {
    slot,
    type: "file",
    "file-path": `/pool/csi/${slot}.img`,
    size: 1024,
    "nvme-tcp-export": false,
    ...more,
  };
}

function volume(id: string, more: object = {}): object {
  return {
    id,
    imagePath: `/pool/csi/${id}.img`,
    sizeBytes: 1024n,
    exported: false,
    exportNqn: "",
    exportPort: 0,
    comment: "",
    ...more,
  };
}

/** What a router holds, and what it prints of it. */
interface Model {
  disks: object[];
  files: object[];
  uptime: string;
  version: string;
  packages: object[];
}

function bench(model: Partial<Model> = {}) {
  const clock = new FakeClock();
  const random = new SeededRandom();
  const held: Model = {
    disks: [poolRow],
    files: [],
    uptime: "1d00:00:00",
    version: "7.24 (stable)",
    packages: [{ name: "routeros" }, { name: "rose-storage", disabled: false }],
    ...model,
  };
  const print = (query: string) => {
    if (query.startsWith("/disk")) return JSON.stringify(held.disks);
    if (query.startsWith("/file")) return JSON.stringify(held.files);
    if (query.startsWith("/system package")) return JSON.stringify(held.packages);
    return JSON.stringify({ uptime: held.uptime, version: held.version, "board-name": "RDS2216" });
  };
  const good = answering(print);
  const replies: FakeRouter[] = [];
  const ssh = new FakeSshTransport((command, signal) => (replies.shift() ?? good)(command, signal));
  const session = new Session({ transport: ssh, clock, random });
  const warnings: string[] = [];
  const store = new RouterVolumeStore({
    session,
    clock,
    random,
    observer: { warning: (message) => warnings.push(message) },
  });
  return { clock, ssh, session, store, held, replies, print, warnings, call: () => fakeCall(clock) };
}

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => VolumeError.is(error, kind) && form.test(error.message));
}

Deno.test("view() asks for disk, sharers, pools, files and the router itself in one command", async () => {
  const { store, ssh, call } = bench();
  await store.view("s1", [path, "/pool/old/s1.img"], call());
  assert.deepEqual(ssh.commands.map(queriesOf), [[
    `/disk print detail as-value where slot="s1" or file-path="${path}" or file-path="/pool/old/s1.img" or mounted`,
    `/file print detail as-value proplist=name,type,size where name="pool/csi/s1.img" or name="pool/old/s1.img"`,
    `/system resource print as-value`,
  ]]);
});

Deno.test("view() finds volume, sharers, files and pools", async () => {
  const { store, call } = bench({
    disks: [poolRow, diskRow("s1"), diskRow("S1"), diskRow("s2", { "file-path": "pool/csi/s1.img" })],
    files: [{ name: "pool/csi/s1.img", type: ".img file", size: 1024 }],
  });
  assert.deepEqual(await store.view("s1", [path], call()), {
    volume: volume("s1"),
    foreign: undefined,
    sharers: [volume("s2", { imagePath: path })],
    files: [{ path, directory: false, sizeBytes: 1024n }],
    pools,
    upMs: 86_400_000,
  });
});

Deno.test("view() tells a disk that is not file-backed apart", async () => {
  const { store, call } = bench();
  const view = await store.view("raid1", [], call());
  assert.deepEqual(view.foreign, { id: "raid1", kind: "raid" });
  assert.equal(view.volume, undefined);
});

Deno.test("view() asks about more paths than fit in several commands and puts the answers together", async () => {
  const paths = Array.from({ length: 9 }, (_, i) => `/pool/${"long-folder-name-".repeat(3)}${i}/s1.img`);
  const { store, ssh, call } = bench({
    disks: [poolRow, diskRow("s1"), diskRow("s2", { "file-path": paths[8] })],
    files: paths.map((path) => ({ name: path.slice(1), type: "file", size: 1 })),
  });
  const view = await store.view("s1", paths, call());
  assert.ok(ssh.commands.length > 1 && ssh.commands.every((command) => command.length <= 1024));
  assert.deepEqual(view.files.map((file) => file.path), paths);
  assert.deepEqual(view.sharers.map(({ id }) => id), ["s2"]);
});

for (
  const [name, json] of [
    ["the disks are unreadable", (query: string) => query.startsWith("/disk") ? "oops" : undefined],
    ["the disks are an object", (query: string) => query.startsWith("/disk") ? "{}" : undefined],
    ["the files are unreadable", (query: string) => query.startsWith("/file") ? "[1]" : undefined],
    [
      "the uptime is missing",
      (query: string) => query.startsWith("/system") ? `{"version":"7.24"}` : undefined,
    ],
    [
      "the version is missing",
      (query: string) => query.startsWith("/system") ? `{"uptime":"1d"}` : undefined,
    ],
  ] as const
) {
  Deno.test(`view() throws unavailable when ${name}`, async () => {
    const { store, replies, print, call } = bench();
    replies.push(answering((query) => json(query) ?? print(query)));
    await rejectsWith(store.view("s1", [path], call()), "unavailable");
  });
}

Deno.test("inventory() lists everything in one command", async () => {
  const { store, ssh, call } = bench({ disks: [diskRow("s2"), poolRow, diskRow("s1")] });
  assert.deepEqual(await store.inventory(call()), {
    volumes: [volume("s1"), volume("s2")],
    pools,
    upMs: 86_400_000,
  });
  assert.deepEqual(ssh.commands.map(queriesOf), [[
    `/disk print detail as-value proplist=slot,type,size,file-path,comment,nvme-tcp-export,nvme-tcp-server-port,` +
    `mounted,mount-point,fs,free,state,nvme-tcp-server-nqn where type="file" or mounted`,
    `/system resource print as-value`,
  ]]);
});

Deno.test("createView() shows the wanted slot when something else is in it", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s2"), { slot: "s1", type: "hardware" }] });
  const view = await store.createView("s1", [path], call());
  assert.deepEqual(view.foreign, { id: "s1", kind: "hardware" });
  assert.deepEqual(view.volumes.map(({ id }) => id), ["s2"]);
  assert.equal(ssh.commands.length, 1);
});

/** A router that cuts every frame above `limit` characters. */
function limitedTo(limit: number, print: (query: string) => string): FakeRouter {
  return (command) =>
    ended(
      printFrames(command, print).split("\r\n").filter((line) => line !== "")
        .map((line) => `${line.slice(0, limit)}\r\n`).join(""),
    );
}

for (const what of ["inventory", "createView"] as const) {
  Deno.test(`${what}() falls back to parts when the router cuts its output, and says so once`, async () => {
    const slots = Array.from({ length: 60 }, (_, i) => `pvc-${i.toString(16).padStart(2, "0")}`);
    const { store, ssh, call, warnings } = bench();
    ssh.router = limitedTo(1000, (query) => {
      if (query.startsWith("/system")) return `{"uptime":"1d","version":"7.24"}`;
      if (query.startsWith("/file")) return `[]`;
      if (query.includes(`type="file" or mounted`)) return JSON.stringify(slots.map((slot) => diskRow(slot)));
      const pattern = /slot~"(.*)"$/.exec(query)?.[1]?.replaceAll("\\$", "$");
      if (pattern === undefined) return JSON.stringify([poolRow]);
      return JSON.stringify(
        slots.filter((slot) => new RegExp(pattern).test(slot)).map((slot) => diskRow(slot)),
      );
    });
    for (let round = 0; round < 2; round++) {
      const found = what === "inventory"
        ? await store.inventory(call())
        : await store.createView("s1", [path], call());
      assert.deepEqual(found.volumes.map(({ id }) => id), slots);
      assert.deepEqual(found.pools, pools);
      // Last of all, so that a reboot in the middle of the list shows in the uptime.
      assert.ok(queriesOf(ssh.commands.at(-1)!).includes("/system resource print as-value"));
    }
    assert.equal(warnings.length, 1);
  });
}

Deno.test("inventory() throws unavailable when even small parts come cut", async () => {
  const { store, ssh, call, clock } = bench();
  ssh.router = limitedTo(30, (query) => query.startsWith("/disk") ? JSON.stringify([poolRow]) : `{}`);
  const failure = rejectsWith(store.inventory(call()), "unavailable");
  await clock.advance(60_000);
  await failure;
  assert.ok(ssh.commands.length < 30);
});

const newVolume = { id: "s1", imagePath: path, sizeBytes: 1024n, comment: "c" };

Deno.test("add() adds and reads everything back in one command of at most four statements", async () => {
  const { store, ssh, call, held, clock } = bench();
  await store.createView("s1", [path], call());
  held.disks = [poolRow, diskRow("s1", { comment: "c" })];
  await clock.advance(2000);
  const outcome = await store.add({ ...newVolume, makeFolder: "/pool/csi" }, call());
  assert.deepEqual(outcome, {
    after: {
      volumes: [volume("s1", { comment: "c" })],
      pools,
      upMs: 86_402_000,
    },
    refusal: undefined,
  });
  assert.equal(ssh.commands.length, 2);
  assert.equal(queriesOf(ssh.commands[1]!).length, 1);
});

Deno.test("add() reads anew when it does not know the uptime on this connection", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1")] });
  const { after } = await store.add(newVolume, call());
  assert.equal(after.upMs, 86_400_000);
  assert.equal(ssh.commands.length, 2);
  assert.equal(statementsOf(ssh.commands[1]!), "");
});

Deno.test("add() gives the router's words and what is there when it refuses", async () => {
  const { store, replies, call } = bench({ disks: [poolRow, { slot: "s1", type: "hardware" }] });
  replies.push(() => ended("failure: blue\r\n"));
  const { after, refusal } = await store.add(newVolume, call());
  assert.equal(refusal, `"failure: blue"`);
  assert.deepEqual(after.volumes, []);
});

Deno.test("change() changes and reads back in one command", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1", { comment: "new" })] });
  const outcome = await store.change("s1", "old", { comment: "new", export: false }, call());
  assert.deepEqual(outcome.after.volume, volume("s1", { comment: "new" }));
  assert.equal(outcome.refusal, undefined);
  assert.equal(ssh.commands.length, 1);
  assert.equal(
    statementsOf(ssh.commands[0]!),
    `/disk set [find where slot="s1" and comment="old"] nvme-tcp-export="no" comment="new"`,
  );
});

Deno.test("change() of two long comments reads back in a second command", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s1")] });
  const comment = "$".repeat(170);
  const nqn = `nqn.2000-02.com.mikrotik:${"s".repeat(40)}:1-ab12cd34`;
  const outcome = await store.change("s1", comment, { comment, export: { nqn, port: 4420 } }, call());
  assert.deepEqual(outcome.after.volume, volume("s1"));
  assert.equal(ssh.commands.length, 2);
  assert.ok(ssh.commands.every((command) => command.length <= 1024));
});

Deno.test("change() of nothing only looks", async () => {
  const { store, ssh, call } = bench();
  await store.change("s1", "old", {}, call());
  assert.deepEqual(ssh.commands.map(statementsOf), [""]);
});

for (const comment of ["a\nb", "ünï {rds1 x}", "\ufffd"]) {
  Deno.test(`change() and remove() throw precondition for the comment ${JSON.stringify(comment)} and send nothing`, async () => {
    const { store, ssh, call } = bench();
    await rejectsWith(store.change("s1", comment, { comment: "x" }, call()), "precondition", /comment/);
    await rejectsWith(
      store.remove("s1", comment, path, call()),
      "precondition",
      /comment/,
    );
    assert.equal(ssh.commands.length, 0);
  });
}

Deno.test("change() throws precondition for an export where RouterOS has no NQN for it", async () => {
  const { store, ssh, call } = bench({ version: "7.20.8 (long-term)" });
  await store.view("s1", [], call());
  const change = { export: { nqn: "nqn.x:y", port: 4420 } };
  await rejectsWith(store.change("s1", "old", change, call()), "precondition", /7\.20\.8/);
  assert.equal(ssh.commands.length, 1);
});

Deno.test("remove() removes and reads back in one command", async () => {
  const { store, ssh, call } = bench();
  await store.view("s1", [path], call());
  const { after, refusal } = await store.remove("s1", "old", path, call());
  assert.deepEqual(after, {
    volume: undefined,
    foreign: undefined,
    sharers: [],
    files: [],
    pools,
    upMs: 86_400_000,
  });
  assert.equal(refusal, undefined);
  assert.equal(ssh.commands.length, 2);
});

const mutations = {
  add: (store: RouterVolumeStore, call: ReturnType<typeof fakeCall>) => store.add(newVolume, call),
  change: (store: RouterVolumeStore, call: ReturnType<typeof fakeCall>) =>
    store.change("s1", "old", { comment: "new" }, call),
  remove: (store: RouterVolumeStore, call: ReturnType<typeof fakeCall>) =>
    store.remove("s1", "old", path, call),
};

for (const [name, mutate] of Object.entries(mutations)) {
  for (
    const [how, reply] of [
      ["torn channel", () => torn("")],
      ["silent end", () => ended("")],
      ["cut answer", (command: string) => ended(printFrames(command, () => "[]").slice(0, 18))],
      ["unreadable answer", answering(() => "oops")],
    ] as [string, FakeRouter][]
  ) {
    Deno.test(`${name}() settles a ${how} by reading, without sending it again`, async () => {
      const { store, ssh, replies, call, clock } = bench({
        disks: [poolRow, diskRow("s1", { comment: "old" })],
      });
      await store.view("s1", [path], call());
      replies.push(reply, () => torn(""), () => torn(""));
      const outcome = mutate(store, call());
      await clock.advance(10_000);
      const { after, refusal } = await outcome;
      const found = "volumes" in after ? after.volumes[0] : after.volume;
      assert.deepEqual(found, volume("s1", { comment: "old" }));
      assert.equal(refusal, undefined);
      assert.deepEqual(ssh.commands.slice(2).map(statementsOf), ["", "", ""]);
    });
  }

  Deno.test(`${name}() throws deadline when its outcome cannot be read in time`, async () => {
    const { store, ssh, clock } = bench();
    ssh.router = () => torn("");
    const failure = rejectsWith(mutate(store, fakeCall(clock, 20_000)), "deadline");
    await clock.advance(20_000);
    await failure;
    assert.equal(ssh.commands.filter((command) => statementsOf(command) !== "").length, 1);
  });

  Deno.test(`${name}() throws unavailable when it was certainly not sent`, async () => {
    const { store, ssh, call, clock } = bench();
    ssh.onConnect = () => {
      throw new Error("ECONNREFUSED");
    };
    const failure = rejectsWith(mutate(store, call()), "unavailable", /ECONNREFUSED/);
    await clock.advance(10_000);
    await failure;
    assert.equal(ssh.commands.length, 0);
  });
}

Deno.test("remove() never takes the uptime of another connection for its own", async () => {
  const { store, ssh, call, held, clock } = bench();
  await store.view("s1", [path], call());
  ssh.drop();
  await clock.advance(0);
  held.uptime = "00:00:05";
  const { after } = await store.remove("s1", "old", path, call());
  assert.equal(after.upMs, 5000);
});

Deno.test("remove() is not sent when the connection was lost since its call looked: the router may have rebooted", async () => {
  const { store, ssh, call, clock } = bench();
  const context = call();
  await store.view("s1", [path], context);
  ssh.drop();
  await clock.advance(0);
  await store.view("s1", [path], call());
  await rejectsWith(store.remove("s1", "old", path, context), "unavailable", /looked at again/);
  assert.deepEqual(ssh.commands.map(statementsOf), ["", ""]);
  await store.view("s1", [path], context);
  await store.remove("s1", "old", path, context);
  assert.equal(ssh.commands.length, 4);
});

Deno.test("probe() looks at packages once a connection, and rests for some seconds", async () => {
  const { store, ssh, call, clock } = bench();
  await store.probe(call());
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2]);
  assert.equal(store.routerInfo?.version, "7.24 (stable)");
  assert.equal(store.routerInfo?.supportsNqn, true);
  await clock.advance(5000);
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2, 1]);
  ssh.drop();
  await clock.advance(0);
  await store.probe(call());
  assert.deepEqual(ssh.commands.map((command) => queriesOf(command).length), [2, 1, 2]);
});

for (
  const [name, model, form] of [
    ["RouterOS before 7.17", { version: "7.16.2 (stable)" }, /needed=7\.17/],
    ["no rose-storage", { packages: [{ name: "routeros" }] }, /rose-storage.*install/],
    [
      "a disabled rose-storage",
      { packages: [{ name: "rose-storage", disabled: "yes" }] },
      /disabled.*enable/,
    ],
  ] as const
) {
  Deno.test(`probe() throws precondition for ${name}, saying what to do`, async () => {
    const { store, call } = bench(model as Partial<Model>);
    await rejectsWith(store.probe(call()), "precondition", form);
    await rejectsWith(store.probe(call()), "precondition", form);
  });
}

Deno.test("probe() throws unavailable when the router cannot be reached", async () => {
  const { store, ssh, call, clock } = bench();
  ssh.onConnect = () => {
    throw new Error("ETIMEDOUT");
  };
  const failure = rejectsWith(store.probe(call()), "unavailable", /ETIMEDOUT/);
  await clock.advance(10_000);
  await failure;
});
