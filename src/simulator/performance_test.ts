import assert from "node:assert/strict";
import { addCommand, jsonCommand, makeRouter, typeTo } from "../../tests/support/simulated_router.ts";
import { seedDisks } from "./seed.ts";

const basePath = "/storage-pool/metal-csi";
const slot = "seed-00050";
const everything = jsonCommand("/disk print detail as-value");

function seeded(count: number) {
  const router = makeRouter();
  router.files.makeDirectories(basePath.slice(1));
  seedDisks(router, basePath, count);
  return typeTo(router);
}

type Typing = ReturnType<typeof seeded>;

/** Milliseconds of the best of some runs, because the machine may be busy. */
async function best(act: () => Promise<unknown>, runs: number): Promise<number> {
  let least = Infinity;
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    await act();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

const image = `${basePath.slice(1)}/${slot}.img`;
const lookups: readonly (readonly [name: string, command: string])[] = [
  ["print by slot", jsonCommand(`/disk print detail as-value where slot="${slot}"`)],
  ["print by slot for people", `/disk print detail where slot="${slot}"`],
  ["find by slot", `:put [:len [/disk find where slot="${slot}"]]`],
  ["find by slot and comment", `:put [:len [/disk find where slot="${slot}" and comment=""]]`],
  ["find by slot or path", `:put [:len [/disk find where slot="x" or file-path="/${image}"]]`],
  ["find by slot or end of path", `:put [:len [/disk find where slot="x" or file-path~"/${slot}[.]img"]]`],
  [
    "print by slot, part of the path or pool",
    jsonCommand(`/disk print detail as-value where slot="x" or file-path~"${slot}[.]im" or mounted`),
  ],
  [
    "print by one slot or another, part of the path or pool",
    jsonCommand(
      `/disk print detail as-value where slot="x" or file-path~"seed-x[.]im" or mounted or slot="${slot}"`,
    ),
  ],
  ["find by label", `:put [:len [/disk find where type="file" and fs-label="storage-pool-fs"]]`],
  ["set by find", `/disk set [find where slot="${slot}"] comment="x"`],
  ["find a file", `:put [:len [/file find where name="${image}"]]`],
  [
    "print files by a part of their path",
    jsonCommand(`/file print detail as-value proplist=name,type,size where name~"${slot}[.]im"`),
  ],
  [
    "print files by parts of their paths",
    jsonCommand(
      `/file print detail as-value proplist=name,type,size where name~"${slot}[.]im" or name~"/snap-" ` +
        `or name="storage-pool/metal-csi"`,
    ),
  ],
];

/** Commands that change something: run twice, because one removes what another adds. */
const changes: readonly (readonly [name: string, ...commands: string[]])[] = [
  [
    "add and remove a disk with its file",
    addCommand("one-more"),
    `/disk remove [find where slot="one-more"]; /file remove "${basePath.slice(1)}/one-more.img"`,
  ],
  [
    "add and remove a disk with its subvolume",
    `/disk/btrfs/subvolume/add fs="storage-pool-fs" name="metal-csi/more"; ` +
    `/disk add type="file" slot="more" file-path="${basePath}/more/disk.img" file-size="1073741824"`,
    `/disk remove [find where slot="more"]; /disk/btrfs/subvolume/remove ` +
    `[find where fs="storage-pool-fs" and fullname="metal-csi/more"]`,
  ],
  [
    "export and withdraw a disk",
    `/disk set [find where slot="${slot}"] nvme-tcp-export=yes nvme-tcp-server-nqn="nqn.2000-02.x:y"`,
    `/disk set [find where slot="${slot}"] nvme-tcp-export=no`,
  ],
];

/** Runs commands, none of which may be refused: a refusal is quick too. */
async function run(type: Typing, commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const printed = await type(command);
    assert.ok(printed === "" || /^(?:[[0-9]|Flags: )/.test(printed), printed);
  }
}

/**
 * How much longer it takes among 10,000 disks than among 100. The best of many runs; less than a tenth of a millisecond
 * counts as that.
 */
async function ratio(few: Typing, many: Typing, commands: readonly string[], runs = 50): Promise<number> {
  const time = async (type: Typing) => Math.max(0.1, await best(() => run(type, commands), runs));
  return await time(many) / await time(few);
}

Deno.test("reads and changes by slot, path or a part of a path take as long among 10,000 disks as among 100", async () => {
  const [few, many] = [seeded(100), seeded(10_000)];
  const all = await ratio(few, many, [everything], 5);
  assert.ok(all > 20, `listing them all takes ${all} times as long: the measurement tells nothing`);
  const over: string[] = [];
  for (const [name, ...commands] of [...lookups, ...changes]) {
    const times = await ratio(few, many, commands);
    if (times > 3) over.push(`${name}: ${times.toFixed(1)} times`);
  }
  assert.deepEqual(over, []);
});
