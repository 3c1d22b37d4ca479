import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import type { Totals, VolumeTotals } from "../../volume/model/totals.ts";
import { statusJson, statusPage } from "./page.ts";
import { parseStatusQuery } from "./model.ts";
import { StatusStore } from "./status_store.ts";

const facts = {
  driverName: "rds.csi.srvlab.io",
  version: "1.2.3",
  roles: ["controller", "node"] as const,
  nodeId: "node-1",
  routers: { default: "10.0.0.1:22" },
};
const well = { failure: undefined, unreadiness: undefined };

function opened() {
  const clock = new FakeClock();
  const board = new StatusStore(facts, clock);
  const query = (text = "") => parseStatusQuery(new URLSearchParams(text));
  return {
    clock,
    board,
    read: (text = "") => board.read(query(text), well),
    page: (text = "") => statusPage(board.read(query(text), well), query(text)),
  };
}

function volume(id: string, change: Partial<VolumeTotals> = {}): VolumeTotals {
  return {
    ...{ id, sizeBytes: 1n << 30n, basePath: "/pool/csi", holders: [], exported: false, migrating: false },
    epoch: 0,
    ...change,
  };
}

function reading(volumes: readonly VolumeTotals[], snapshotBytes?: bigint): Totals {
  const pool = { sizeBytes: 100n, freeBytes: 70n, diskBytes: 90n, snapshotBytes };
  const counts = { volumes: volumes.length, attachments: 0, migrations: 0 };
  return {
    volumes,
    withSnapshots: snapshotBytes !== undefined,
    folders: [{ basePath: "/pool/csi", poolName: "pool", pool, ...counts }],
  };
}

const holder = (nodeId: string) =>
  ({ nodeId, sinceSeconds: 0, readOnly: false, mode: "single-node-writer" }) as const;

Deno.test("the status store shows volumes as last read, ordered, with their health", () => {
  const { board, read, clock } = opened();
  const controller = board.controller.router();
  const held = volume("pvc-2", { holders: [holder("node-7")], exported: true, epoch: 3 });
  controller.occurred({
    kind: "inventory-read",
    totals: reading([held, volume("pvc-1")]),
    atMs: clock.now(),
  });
  const problem = { status: "INACCESSIBLE", reason: "ImageMissing", message: "the file is gone" } as const;
  controller.occurred({ kind: "health", volumeId: "pvc-1", problems: [problem] });
  const status = read().controller!;
  assert.deepEqual(status.volumes.items.map(({ id, problems }) => [id, problems.length]), [["pvc-1", 1], [
    "pvc-2",
    0,
  ]]);
  assert.deepEqual([status.attachments, status.unwell], [1, 1]);
  for (
    const [text, ids] of [["q=node-7", ["pvc-2"]], ["q=imagemissing", ["pvc-1"]], ["q=none", []]] as const
  ) {
    assert.deepEqual(read(text).controller!.volumes.items.map(({ id }) => id), ids, text);
  }
  controller.occurred({ kind: "health", volumeId: "pvc-1", problems: [] });
  assert.equal(read().controller!.unwell, 0);
  assert.deepEqual(read().events.map(({ reason }) => reason), ["VolumeHealthy", "ImageMissing"]);
});

Deno.test("the status store keeps the promises to snapshots when only disks are read", () => {
  const { board, read, clock } = opened();
  board.controller.router().occurred({ kind: "inventory-read", totals: reading([], 5n), atMs: clock.now() });
  board.controller.router().occurred({ kind: "inventory-read", totals: reading([]), atMs: clock.now() });
  assert.equal(read().controller!.routers[0]!.folders[0]!.pool!.snapshotBytes, 5n);
});

Deno.test("the status store names the volume that has the label of a pool, and its claim", () => {
  const { board, page, clock } = opened();
  const { controller } = board;
  const totals = reading([]);
  const shown = (labelTakenBy?: string) => {
    const folders = totals.folders.map((folder) => ({
      ...folder,
      pool: { ...folder.pool!, ...labelTakenBy === undefined ? {} : { labelTakenBy } },
    }));
    const event = { kind: "inventory-read", totals: { ...totals, folders }, atMs: clock.now() } as const;
    controller.router().occurred(event);
    return /the volume [^:]* has this pool&#39;s label/.exec(page())?.[0];
  };
  assert.equal(shown(), undefined);
  assert.equal(shown("pvc-7"), "the volume pvc-7 has this pool&#39;s label");
  controller.claimOf = (handle) => handle === "pvc-7" ? "apps/data" : undefined;
  assert.equal(shown("pvc-7"), "the volume pvc-7 of the claim apps/data has this pool&#39;s label");
});

Deno.test("the status store shows a router that is away: since when, why, and for how long calls are refused", async () => {
  const { board, clock, page, read } = opened();
  const router = board.controller.router();
  router.connection({ state: "ready", reason: undefined });
  router.identified({ version: "7.24.1 (stable)", board: "RDS2216", sshExploited: true });
  router.command({ kind: "view", outcome: "ended", ms: 40 });
  router.command({ kind: "view", outcome: "not-run", ms: 0 });
  await clock.advance(60_000);
  router.connection({ state: "backing-off", reason: "it was closed" });
  router.breaker({ state: "open", cause: "no route" });
  await clock.advance(30_000);
  router.breaker({ state: "open", cause: "no route to it" });
  const [shown] = read().controller!.routers;
  assert.equal(shown!.breakerSinceAtMs, clock.now() - 30_000, "a further failed try is no new outage");
  assert.equal(shown!.latency.count, 1, "a command that was not run took no time");
  const text = page();
  for (
    const wording of [
      "10.0.0.1:22",
      "RDS2216, RouterOS 7.24.1",
      "this RouterOS is exploited through SSH: upgrade it",
      "SSH session backing-off",
      "it was closed",
      "no route to it",
    ]
  ) {
    assert.ok(text.includes(wording), wording);
  }
});

Deno.test("the status store says why no router can be used, and nothing while one of them can", () => {
  const { board } = opened();
  assert.equal(board.routersAway, undefined);
  const [first, second] = ["default", "east"].map((name) => board.controller.router(name));
  first!.breaker({ state: "open", cause: "it has answered no command for 20 s" });
  assert.equal(board.routersAway, undefined);
  second!.breaker({ state: "trying", cause: undefined });
  assert.equal(
    board.routersAway,
    "calls are refused at once, because of the router default: it has answered no command for 20 s; " +
      "east: it does not answer",
  );
  first!.breaker({ state: "closed", cause: undefined });
  assert.equal(board.routersAway, undefined);
});

Deno.test("the status store shows a node's volumes from their last read, and nothing of unstaged ones", () => {
  const { board, read, page } = opened();
  const { node } = board;
  for (const id of ["pvc-1", "pvc-2", "pvc-3", "pvc-4"]) {
    node.occurred({ kind: "staged", volumeId: id, staged: true });
  }
  const path = { nqn: "nqn.x:y:1-0a0b0c0d", name: "nvme1", port: 4420, hostNqn: "", hostId: "" };
  const live = { ...path, address: "10.0.0.1", state: "live", stateName: "live" } as const;
  node.occurred({ kind: "connections", volumeId: "pvc-1", connections: [live] });
  node.occurred({
    kind: "connections",
    volumeId: "pvc-2",
    connections: [{ ...live, state: "connecting", stateName: "connecting" }],
  });
  node.occurred({ kind: "health", volumeId: "pvc-1", problems: [] });
  node.occurred({ kind: "connections", volumeId: "pvc-9", connections: [live] });
  node.occurred({ kind: "staged", volumeId: "pvc-4", staged: false });
  node.registration("offered");
  node.registration("registered");
  const status = read().node!;
  assert.deepEqual(status.volumes.items.map(({ id }) => id), ["pvc-1", "pvc-2", "pvc-3"]);
  assert.equal(status.unwell, 1, "of what nobody has looked at nothing is known");
  const text = page();
  assert.ok(text.includes("no live path") && text.includes("registered with the kubelet"), text);
  assert.ok(!text.includes("0a0b0c0d"), "the name of an export lets a host in");
});

Deno.test("a page shows hostile names as text", () => {
  const { board, page, read, clock } = opened();
  const name = `"><script>alert(1)</script>`;
  board.controller.router().occurred({
    kind: "inventory-read",
    totals: reading([volume(name, { holders: [holder(name)], basePath: name })]),
    atMs: clock.now(),
  });
  board.controller.router().occurred({ kind: "attach-refused", volumeId: name, nodeId: name, message: name });
  board.called({
    requestId: name,
    path: `/a/${name}`,
    volumeId: name,
    code: "INTERNAL",
    durationMs: 1,
    message: name,
  });
  const router = board.controller.router();
  router.connection({ state: name, reason: name });
  router.identified({ version: name, board: name, sshExploited: false });
  router.command({ kind: name, outcome: name, ms: 1 });
  board.node.occurred({ kind: "staged", volumeId: name, staged: true });
  const text = page(`q=${encodeURIComponent('"><script>')}`);
  assert.ok(text.includes("&lt;script&gt;"));
  assert.ok(!text.includes("exploited"), text);
  assert.ok(!text.includes("<script"), text);
  assert.equal(JSON.parse(statusJson(read())).controller.volumes.items[0].id, name);
});

Deno.test("a page of 5,000 volumes shows a hundred and says so, with links to the rest", () => {
  const { board, page, read, clock } = opened();
  const volumes = Array.from({ length: 5000 }, (_, i) => volume(`pvc-${String(i).padStart(4, "0")}`));
  board.controller.router().occurred({ kind: "inventory-read", totals: reading(volumes), atMs: clock.now() });
  const text = page("page=3&q=pvc");
  assert.equal(text.match(/pvc-[0-9]{4}/g)!.length, 100);
  assert.ok(text.includes("pvc-0200") && text.includes("pvc-0299"));
  assert.ok(text.includes("5000 of 5,000 volumes, page 3 of 50"), text.slice(0, 9000));
  assert.ok(text.includes(`href="?q=pvc&amp;page=4"`) && text.includes(`href="?q=pvc&amp;page=2"`));
  assert.ok(text.length < 100_000, `${text.length}`);
  assert.equal(read("limit=1000").controller!.volumes.items.length, 1000);
});

Deno.test("statusJson() writes times as text, bytes as numbers, and unknown values as null", () => {
  const { board, read, clock } = opened();
  board.controller.router().occurred({
    kind: "inventory-read",
    totals: reading([volume("pvc-1")], 5n),
    atMs: clock.now(),
  });
  const json = JSON.parse(statusJson(read()));
  const [router] = json.controller.routers;
  assert.equal(router.readAt, new Date(clock.now()).toISOString());
  assert.equal(router.version, null);
  assert.equal(json.at, new Date(clock.now()).toISOString());
  assert.equal(json.controller.volumes.items[0].sizeBytes, 1 << 30);
});

Deno.test("the status store keeps several routers separate, and shows whether its controller leads", () => {
  const clock = new FakeClock();
  const board = new StatusStore({ ...facts, routers: { nas1: "10.0.0.1:22", nas2: "10.0.0.2:22" } }, clock);
  const query = parseStatusQuery(new URLSearchParams());
  const [one, two] = ["nas1", "nas2"].map((name) => board.controller.router(name));
  one!.occurred({ kind: "inventory-read", totals: reading([volume("pvc-1")]), atMs: clock.now() });
  one!.occurred({ kind: "audited", counts: new Map([["no-record", 2]]) });
  two!.occurred({
    kind: "inventory-read",
    totals: reading([volume("pvc-2", { holders: [holder("a")] })]),
    atMs: clock.now(),
  });
  two!.occurred({ kind: "attach-refused", volumeId: "pvc-2", nodeId: "b", message: "held" });
  board.controller.leads(true);
  const status = board.read(query, well);
  assert.deepEqual(status.controller!.volumes.items.map(({ id, router }) => [id, router]), [
    ["pvc-1", "nas1"],
    ["pvc-2", "nas2"],
  ]);
  assert.equal(status.events[0]!.router, "nas2");
  const text = statusPage(status, query);
  for (const wording of ["10.0.0.2:22", "2 no-record", "which leads", "Router nas1"]) {
    assert.ok(text.includes(wording), wording);
  }
  board.controller.leads(false);
  assert.ok(statusPage(board.read(query, well), query).includes("another controller leads"));
  one!.occurred({ kind: "audited", counts: undefined });
  assert.ok(!statusPage(board.read(query, well), query).includes("no-record"));
});
