// The output of real routers, compared letter by letter with the simulator's output for the same content.
import assert from "node:assert/strict";
import { parseDisks } from "../../src/routeros/store/rows.ts";
import { makeMenus } from "../../src/simulator/menu/menus.ts";
import { type Disk, plainDisk } from "../../src/simulator/model/disk.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { describeExports } from "../../src/simulator/nvme/admin_commands.ts";
import { Subsystem } from "../../src/simulator/nvme/controller.ts";
import { firmware, newIdentity } from "../../src/simulator/model/exports.ts";
import { printDetail } from "../../src/simulator/output/items.ts";
import {
  addCommand,
  anyone,
  jsonCommand,
  makeBasePath,
  makeRouter,
  typeTo,
} from "../support/simulated_router.ts";
import { SeededRandom } from "../fakes/random.ts";

function capture(name: string): string {
  return Deno.readTextFileSync(new URL(name, import.meta.url));
}

/** The terminal width of the captures from the RDS2216. */
const terminalWidth = 239;

/** Returns a router with only these disks, after `others` other disks. */
function routerWith(others: number, ...disks: readonly Partial<Disk>[]): Router {
  const router = makeRouter({ pools: [] });
  for (let number = 0; number < others; number++) router.disks.add({ ...plainDisk, slot: `other${number}` });
  for (const disk of disks) router.disks.add({ ...plainDisk, slot: "", ...disk });
  return router;
}

/** Returns `/disk/print detail` of the disks after the others. */
function detail(router: Router, others: number, width: number): string {
  const menu = makeMenus(router).get("disk")!;
  const items = menu.rows().map((row, number) => ({ row, number })).slice(others);
  const names = menu.properties().filter(({ isFlag }) => !isFlag).map(({ name }) => name);
  return printDetail(items, names, menu.textForm!(), width).map((line) => `${line}\n`).join("");
}

const array = (type: string, devices: bigint) => ({
  "raid-type": type,
  "raid-device-count": devices,
  "raid-max-component-size": "none",
});

const poolBytes = 16_003_143_565_312n;

const raid10: readonly Partial<Disk>[] = [
  {
    type: "raid",
    slot: "raid10",
    model: "RAID0 striped",
    sizeBytes: poolBytes,
    pool: {
      mountPoint: "raid10",
      label: "ocp-storage",
      filesystem: "xfs",
      mounted: true,
      disksVanish: false,
      state: "clean",
      otherBytes: poolBytes - 14_789_895_307_264n,
    },
    extra: {
      ...array("0", 4n),
      "fs-uuid": "40437dbc-2318-45dc-817b-b3bb95cf48ab",
      "total-inodes": 1_562_806_656n,
      "free-inodes": 1_562_806_652n,
      "raid-chunk-size": "256K",
      "raid-uuid": "eadca0af-ecff031c-239758ad-951a47de",
    },
  },
  ...[
    "5715669c-43873157-0ebaaa3a-7104d138",
    "0ad95faf-932c93bd-586c8835-8257cd88",
    "ebc29c04-3d2ac385-5f1a3ad1-4236381f",
    "e8e03b13-32cbf0e1-ba36b210-c32e0583",
  ].map((uuid, role) => ({
    type: "raid",
    slot: `raid10-m${role}`,
    model: "RAID1 mirrored",
    sizeBytes: 4_000_786_153_472n,
    mountFilesystem: false,
    raidMaster: "raid10",
    extra: {
      ...array("1", 2n),
      "raid-role": BigInt(role),
      "raid-member-failed": false,
      "raid-member-state": `${role}:in_sync`,
      state: "clean",
      "raid-uuid": uuid,
    },
  })),
];

const fileDisk: Partial<Disk> = {
  type: "file",
  slot: "vm-storage-001",
  model: "/raid10/vm-storage-001.img",
  filePath: "/raid10/vm-storage-001.img",
  sizeBytes: 1n << 40n,
  attachedBytes: 1n << 40n,
  fileSizeBytes: 1n << 40n,
  mountFilesystem: false,
  exported: true,
  port: 4420,
  nqn: "nqn.2026-09.com.mikrotik:rds2216.vm-storage-001",
};

Deno.test("/disk/print detail shows nested arrays as an RDS2216 does", () => {
  assert.equal(detail(routerWith(26, ...raid10), 26, terminalWidth), capture("raid10-detail.txt"));
});

Deno.test("/disk/print detail shows an exported file disk as an RDS2216 does", () => {
  assert.equal(detail(routerWith(31, fileDisk), 31, terminalWidth), capture("file-disk-detail.txt"));
});

const drive = {
  slot: "nvme9",
  model: "TS1TUTE210T",
  interface: "PCIe 2x8 GT/s",
  sizeBytes: 1_024_209_543_168n,
};
const mounted = {
  mountPoint: "nvme9",
  label: "",
  filesystem: undefined,
  mounted: true,
  disksVanish: false,
  state: "",
  otherBytes: 0n,
};
const part = {
  slot: "nvme9-part1",
  model: "TS1TUTE210T",
  sizeBytes: 4_000_000_000n,
  extra: { partition: true },
};

const tables: readonly (readonly [string, string, readonly Partial<Disk>[]])[] = [
  ["nvme-proplist.txt", "/disk/print proplist=slot,model,interface,size,fs where slot=nvme9", [drive]],
  ["nvme-whole.txt", "/disk/print where slot=nvme9", [{ ...drive, pool: mounted, extra: { fs: "ext4" } }]],
  ["nvme-partitioned.txt", '/disk/print where slot~"nvme9"', [
    { ...drive, extra: { "guid-partition-table": true } },
    part,
  ]],
];

for (const [name, command, disks] of tables) {
  Deno.test(`${command} prints what RouterOS 7.24.2 prints: ${name}`, async () => {
    const type = typeTo(routerWith(0, ...disks));
    assert.equal((await type(command)).replaceAll("\r\n", "\n"), capture(name));
  });
}

Deno.test("the driver reads the pool and the volume of the RDS2216", async () => {
  const type = typeTo(routerWith(0, ...raid10, fileDisk));
  const frame = (await type(jsonCommand("/disk print detail as-value"))).trim();
  const { volumes, pools } = parseDisks(frame);
  assert.deepEqual(
    pools.map(({ mountPoint, filesystem, sizeBytes, state }) => [mountPoint, filesystem, sizeBytes, state]),
    [
      ["raid10", "xfs", poolBytes, "clean"],
    ],
  );
  assert.deepEqual(
    volumes.map((
      { id, imagePath, sizeBytes, exportNqn, exportPort },
    ) => [id, imagePath, sizeBytes, exportNqn, exportPort]),
    [
      [fileDisk.slot, fileDisk.filePath, 1n << 40n, fileDisk.nqn, 4420],
    ],
  );
});

/** `name: value` lines of `nvme discover`. */
function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap((line) => {
      const at = line.indexOf(": ");
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1).trim()] as const];
    }),
  );
}

Deno.test("the discovery log shows an export as the RDS2216's does", () => {
  const fields = fieldsOf(capture("discovery.txt"));
  const access = { port: 4420, hosts: undefined, sizeBytes: 0n, identity: newIdentity(new SeededRandom()) };
  const subsystem = new Subsystem(fields.get("subnqn")!, undefined, access);
  const log = describeExports([subsystem], 2n, { address: fields.get("traddr")!, port: 4420 });
  const view = new DataView(log.buffer, 1024);
  const text = (at: number, length: number) =>
    new TextDecoder().decode(log.subarray(1024 + at, 1024 + at + length)).replace(/[\0 ]+$/, "");
  const words = (value: number, ...names: readonly (readonly [number, string])[]) =>
    names.find(([number]) => number === value)?.[1];
  assert.deepEqual(
    new Map([
      ["trtype", words(view.getUint8(0), [3, "tcp"])],
      ["adrfam", words(view.getUint8(1), [1, "ipv4"])],
      ["subtype", words(view.getUint8(2), [2, "nvme subsystem"])],
      ["treq", words(view.getUint8(3), [4, "not specified, sq flow control disable supported"])],
      ["portid", String(view.getUint16(4, true))],
      ["trsvcid", text(32, 32)],
      ["subnqn", text(256, 256)],
      ["traddr", text(512, 256)],
      ["eflags", words(view.getUint16(10, true), [0, "none"])],
      ["sectype", words(view.getUint8(769), [0, "none"])],
    ]),
    fields,
  );
});

Deno.test("a controller's serial, model and firmware have the form of the RDS2216's", () => {
  const [, serial = "", model, shown] =
    /^nvme1 +1 +(\S+) +(\S+) +(\S+) +tcp/m.exec(capture("controller-list.txt")) ?? [];
  assert.equal(
    newIdentity(new SeededRandom()).serial.replaceAll(/[0-9a-f]/g, "x"),
    serial.replaceAll(/[0-9a-f]/g, "x"),
  );
  assert.deepEqual([model, shown], ["Linux", firmware]);
});

Deno.test("refusals that were seen on routers have the same beginning in the simulator", async () => {
  const type = typeTo(routerWith(0, { ...raid10[0], pool: undefined }, fileDisk));
  const seen = capture("errors.txt").split("\n").filter((line) => line !== "");
  const said = [
    await type("/foo"),
    await type("/disk/print foo=bar"),
    await type("/disk/print where ="),
    await type('/disk/remove "nobody"'),
    await type('/disk/set "raid10" type="file"'),
    await type('/disk/set "raid10" slot="vm-storage-001"'),
    await typeTo(makeRouter(), { ...anyone, mayWrite: false })('/disk/remove "nvme1"'),
    await typeTo(await poolWithDisk())('/disk/remove "storage-pool"'),
  ];
  assert.deepEqual(said.map((text) => seen.find((line) => text.startsWith(line)) ?? text), seen);
});

/** Returns a router with a pool that a disk lies on. */
async function poolWithDisk(): Promise<Router> {
  const router = makeRouter();
  await typeTo(router)(makeBasePath);
  await typeTo(router)(addCommand("a"));
  return router;
}
