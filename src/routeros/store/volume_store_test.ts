import assert from "node:assert/strict";
import {
  answering,
  ended,
  type FakeRouter,
  printFrames,
  queriesOf,
} from "../../../tests/fakes/ssh_transport.ts";
import type { CreateView, Inventory } from "../../volume/ports/ports.ts";
import {
  bench,
  diskRow,
  fileRow,
  type Model,
  path,
  poolRow,
  pools,
  rejectsWith,
  stem,
  volume,
} from "./store_test_support.ts";

const wanted = { id: "s1", stem, folder: "/pool/csi" };
const snapshot = "/pool/csi/snap-1.s0.x.n.1a2b3c4d.img";
const image = { path, directory: false, sizeBytes: 1024n };

Deno.test("view() asks for disk, sharers, pools, files and the router itself in one command", async () => {
  const { store, ssh, call } = bench();
  await store.view("s1", stem, call());
  assert.deepEqual(ssh.commands.map(queriesOf), [[
    `/disk print detail as-value where slot="s1" or file-path~"s1[.]1a2b3c4d" or mounted`,
    `/file print detail as-value proplist=name,type,size where name~"s1[.]1a2b3c4d"`,
    `/system resource print as-value`,
  ]]);
});

Deno.test("view() finds volume, sharers, files and pools, to the letter", async () => {
  const { store, call } = bench({
    disks: [
      poolRow,
      diskRow("s1"),
      diskRow("S1"),
      diskRow("s2", { "file-path": path.slice(1) }),
      diskRow("s3", { "file-path": `/pool/old/${stem}/disk.img` }),
      diskRow("s4", { "file-path": "/pool/csi/s1-1a2b3c4d.img" }),
    ],
    files: [fileRow(path), fileRow("/pool/csi/S1.1a2b3c4d.img"), {
      name: `pool/old/${stem}`,
      type: "directory",
    }],
  });
  assert.deepEqual(await store.view("s1", stem, call()), {
    volume: volume("s1"),
    foreign: undefined,
    sharers: [
      volume("s2", { imagePath: path }),
      volume("s3", { imagePath: `/pool/old/${stem}/disk.img` }),
    ],
    files: [image, { path: `/pool/old/${stem}`, directory: true, sizeBytes: 0n }],
    pools,
    upMs: 86_400_000,
  });
});

Deno.test("view() tells a disk that is not file-backed apart", async () => {
  const { store, call } = bench();
  const view = await store.view("raid1", "raid1.1a2b3c4d", call());
  assert.deepEqual(view.foreign, { id: "raid1", kind: "raid" });
  assert.equal(view.volume, undefined);
});

for (
  const [version, label, unfenced] of [["7.24", "pool-fs"], ["7.20.8", "pool-fs", true], [
    "7.17.2",
    undefined,
    true,
  ]] as const
) {
  Deno.test(`every look tells at once what RouterOS ${version} cannot do`, async () => {
    const { store, call } = bench({ version });
    for (
      const look of [
        await store.view("s1", stem, call()),
        await store.createView(undefined, call()),
        await store.inventory(call()),
        await store.files("/snap-", call()),
      ]
    ) {
      assert.equal(look.pools[0]?.subvolumeLabel, label);
      assert.equal(look.unfenced, unfenced);
    }
  });
}

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
    await rejectsWith(store.view("s1", stem, call()), "unavailable");
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
    `mounted,mount-point,fs,fs-label,free,state,nvme-tcp-server-nqn where type="file" or mounted`,
    `/system resource print as-value`,
  ]]);
});

Deno.test("createView() asks for all disks, the stem, the folder and all snapshots in one command", async () => {
  const { store, ssh, call } = bench();
  await store.createView(wanted, call());
  assert.deepEqual(
    ssh.commands.map((command) => queriesOf(command).map((query) => query.split(" where ")[1])),
    [[
      `type="file" or mounted or slot="s1"`,
      `name~"s1[.]1a2b3c4d" or name="pool/csi" or name~"/snap-"`,
      undefined,
    ]],
  );
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

Deno.test("files() asks for a part of the path, pools and the router itself in one command", async () => {
  const { store, ssh, call } = bench({ files: [fileRow(snapshot), fileRow(path)] });
  assert.deepEqual(await store.files("/snap-1.", call()), {
    files: [{ ...image, path: snapshot }],
    pools,
    upMs: 86_400_000,
  });
  assert.deepEqual(ssh.commands.map(queriesOf), [[
    `/file print detail as-value proplist=name,type,size where name~"/snap-1[.]"`,
    `/disk print detail as-value where mounted`,
    `/system resource print as-value`,
  ]]);
});

const subvolume = { label: "pool-fs", path: "csi/v1" };

Deno.test("subvolume() finds one by file system and full name", async () => {
  const row = { fs: "pool-fs", fullname: "csi/v1", "read-only": true, parent: "v0" };
  const { store, ssh, call, held } = bench({ subvolumes: [row] });
  await store.inventory(call());
  assert.deepEqual(await store.subvolume(subvolume, call()), { readOnly: true, parentName: "v0" });
  assert.deepEqual(queriesOf(ssh.commands[1]!), [
    `/disk/btrfs/subvolume/print detail as-value where fs="pool-fs" and fullname="csi/v1"`,
  ]);
  held.subvolumes = [];
  assert.equal(await store.subvolume(subvolume, call()), undefined);
});

Deno.test("subvolume() throws unsupported before RouterOS 7.18, and never names the menu", async () => {
  const { store, ssh, call } = bench({ version: "7.17.2 (stable)" });
  for (let round = 0; round < 2; round++) {
    await rejectsWith(store.subvolume(subvolume, call()), "unsupported", /7\.17\.2/);
  }
  assert.deepEqual(ssh.commands.map(queriesOf), [["/system resource print as-value"]]);
});

Deno.test("createView() shows the wanted slot when something else is in it", async () => {
  const { store, ssh, call } = bench({ disks: [poolRow, diskRow("s2"), { slot: "s1", type: "hardware" }] });
  const view = await store.createView(wanted, call());
  assert.deepEqual(view.foreign, { id: "s1", kind: "hardware" });
  assert.deepEqual(view.volumes.map(({ id }) => id), ["s2"]);
  assert.equal(ssh.commands.length, 1);
});

const snapshots = Array.from(
  { length: 20 },
  (_, i) => `/pool/csi/snap-${i.toString(16).padStart(2, "0")}.s0.x.n.1a2b3c4d.img`,
);

/** The regular expression that a query compares a property with. */
function patternOf(property: string, query: string): string | undefined {
  return new RegExp(`${property}~"((?:[^"\\\\]|\\\\.)*)"`).exec(query)?.[1]?.replaceAll("\\$", "$");
}

/** What a query for snapshots shows of the paths given; a query for anything else shows the volume's image. */
function filesMatching(query: string, paths: readonly string[]): object[] {
  const own = query.includes("s1[.]") ? [fileRow(path)] : [];
  const pattern = query.includes("snap-")
    ? patternOf("name", query.slice(query.lastIndexOf("name~")))
    : undefined;
  if (pattern === undefined) return own;
  return [
    ...own,
    ...paths.filter((one) => new RegExp(pattern).test(one.slice(1))).map((one) => fileRow(one)),
  ];
}

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
      if (query.startsWith("/file")) return JSON.stringify(filesMatching(query, snapshots));
      if (query.includes(`type="file" or mounted`)) return JSON.stringify(slots.map((slot) => diskRow(slot)));
      const pattern = patternOf("slot", query);
      if (pattern === undefined) return JSON.stringify([poolRow]);
      return JSON.stringify(
        slots.filter((slot) => new RegExp(pattern).test(slot)).map((slot) => diskRow(slot)),
      );
    });
    for (let round = 0; round < 2; round++) {
      const found: Inventory & Partial<CreateView> = what === "inventory"
        ? await store.inventory(call())
        : await store.createView(wanted, call());
      assert.deepEqual(found.volumes.map(({ id }) => id), slots);
      if (what === "createView") {
        assert.deepEqual(found.files?.map((file) => file.path), [path, ...snapshots]);
      }
      assert.deepEqual(found.pools, pools);
      // Last of all, so that a reboot in the middle of the list shows in the uptime.
      assert.ok(queriesOf(ssh.commands.at(-1)!).includes("/system resource print as-value"));
    }
    assert.equal(warnings.length, 1);
  });
}

Deno.test("files() falls back to parts when the router cuts its output", async () => {
  const { store, ssh, call, warnings } = bench();
  ssh.router = limitedTo(1000, (query) => {
    if (query.startsWith("/system")) return `{"uptime":"1d","version":"7.24"}`;
    return JSON.stringify(query.startsWith("/file") ? filesMatching(query, snapshots) : [poolRow]);
  });
  const view = await store.files("/snap-", call());
  assert.deepEqual(view.files.map((file) => file.path), snapshots);
  assert.deepEqual(view.pools, pools);
  assert.ok(queriesOf(ssh.commands.at(-1)!).includes("/system resource print as-value"));
  assert.equal(warnings.length, 1);
});

Deno.test("inventory() throws unavailable when even small parts come cut", async () => {
  const { store, ssh, call, clock } = bench();
  ssh.router = limitedTo(30, (query) => query.startsWith("/disk") ? JSON.stringify([poolRow]) : `{}`);
  const failure = rejectsWith(store.inventory(call()), "unavailable");
  await clock.advance(60_000);
  await failure;
  assert.ok(ssh.commands.length < 30);
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
