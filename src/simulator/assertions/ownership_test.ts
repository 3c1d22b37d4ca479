import assert from "node:assert/strict";
import { addCommand, makeBasePath, makeRouter, typeTo } from "../../../tests/support/simulated_router.ts";
import { watchOwnership } from "./ownership.ts";

const folder = "storage-pool/metal-csi";
const base = "metal-csi";
const earlier = "pvc-01234567-89ab-4cde-8f01-23456789abcd";
const ownSnapshot = `snap-${"0".repeat(28)}.v-1.1767225600.n.0a1b2c3d`;
const theirs = "v-2.ffffffff";
const menu = "/disk/btrfs/subvolume";

function addSubvolume(name: string, parent?: string): string {
  return `${menu}/add fs="storage-pool-fs" name="${name}"${
    parent === undefined ? "" : ` parent="${parent}" read-only="yes"`
  }`;
}

async function rulesOf(commands: readonly string[], clusterHashes?: readonly string[]): Promise<string[]> {
  const router = makeRouter();
  const rules: string[] = [];
  const observe = watchOwnership(
    router,
    { basePaths: ["/storage-pool/metal-csi"], clusterHashes },
    (rule) => rules.push(rule),
  );
  const prepare = typeTo(router);
  await prepare(`${makeBasePath}; ${addCommand("ours")}; ${addCommand(earlier)}`);
  await prepare(
    `${addSubvolume("vol.0a1b2c3d")}; ${addSubvolume("home")}; ${addSubvolume(ownSnapshot, "vol.0a1b2c3d")}`,
  );
  await prepare(`${addSubvolume(`${base}/used`)}; ${addCommand("used").replace("used.img", "used/x.img")}`);
  await prepare(`${addSubvolume(theirs)}; /file add name="${folder}/${theirs}.img"`);
  const type = typeTo(router, { observe, understood() {} });
  for (const command of commands) await type(command);
  return rules;
}

const clean: readonly (readonly [name: string, commands: readonly string[]])[] = [
  ["making the base path and a disk in it", [makeBasePath, addCommand("a")]],
  ["changing, disabling and removing an own disk", [
    '/disk set "ours" comment="x"',
    '/disk disable "ours"',
    '/disk remove "ours"',
  ]],
  ["removing a file after its disk", ['/disk remove "ours"', `/file remove "${folder}/ours.img"`]],
  ["finding nothing to remove", ['/disk remove [find where slot="nobody"]']],
  ["reading anything", ["/disk print", "/file print proplist=name"]],
  ["a subvolume in the base path", [addSubvolume(`${base}/v`)]],
  ["a volume's subvolume with a hash", [addSubvolume("v-1.0a1b2c3d"), `${menu}/remove "v-1.0a1b2c3d"`]],
  ["a snapshot with a hash", [addSubvolume(ownSnapshot.replace("n.0", "b.0"), "vol.0a1b2c3d")]],
  ["a clone of a snapshot", [`${addSubvolume("v-3.0a1b2c3d")} parent="${ownSnapshot}"`]],
  ["removing a snapshot", [`${menu}/remove [find where fullname="${ownSnapshot}"]`]],
  ["a disk in an own subvolume", [addCommand("a").replace(`${base}/a.img`, "vol.0a1b2c3d/a.img")]],
  ["a probe's long slot, and its file before its disk", [
    addCommand(`rds-csi-probe-0123abcd-${"x".repeat(40)}`),
    `/file remove "${folder}/rds-csi-probe-0123abcd-${"x".repeat(40)}.img"`,
  ]],
  ["a probe's subvolume at the top", [addSubvolume("rds-csi-probe-0123abcd-top")]],
  ["changing and removing a disk of the legacy driver", [
    `/disk set "${earlier}" comment="x"`,
    `/disk remove "${earlier}"`,
  ]],
  ["copying and renaming a file beside the base path that carries a hash", [
    '/disk remove "ours"',
    `/file copy "${folder}/ours.img" name="storage-pool/${ownSnapshot}.img.part"`,
    `/file set "storage-pool/${ownSnapshot}.img.part" name="storage-pool/${ownSnapshot}.img"`,
    `/file remove "storage-pool/${ownSnapshot}.img"`,
  ]],
];

for (const [name, commands] of clean) {
  Deno.test(`${name} breaks no rule`, async () => {
    assert.deepEqual(await rulesOf(commands), []);
  });
}

const broken: readonly (readonly [name: string, command: string, rule: string])[] = [
  [
    "a long slot that is nearly a probe's",
    addCommand(`rds-csi-probe-x${"x".repeat(40)}`),
    "outside-owner-area",
  ],
  ["changing hardware", '/disk set "nvme1" comment="x"', "outside-owner-area"],
  ["removing a pool", '/disk remove "storage-pool"', "outside-owner-area"],
  ["a slot of another form", addCommand("Our_Disk"), "outside-owner-area"],
  ["a disk outside the base path", addCommand("a").replace("metal-csi/", ""), "outside-owner-area"],
  ["a disk in a folder that only begins alike", addCommand("a").replace("csi", "csi2"), "outside-owner-area"],
  ["climbing out of the base path", addCommand("a").replace("csi/", "csi/../"), "outside-owner-area"],
  ["a file outside the base path", '/file add type="directory" name="storage-pool/x"', "outside-owner-area"],
  ["removing the whole pool", '/file remove "storage-pool"', "outside-owner-area"],
  ["moving a file out", `/file set "${folder}/ours.img" name="storage-pool/x.img"`, "outside-owner-area"],
  ["a file before its disk", `/file remove "${folder}/ours.img"`, "file-before-disk"],
  ["a folder before its disks", `/file remove "${folder}"`, "file-before-disk"],
  ["a new slot of the legacy driver's form", addCommand(earlier.replace("0", "1")), "outside-owner-area"],
  ["moving the file of a disk", `/file set "${folder}/ours.img" name="${folder}/x.img"`, "file-before-disk"],
  [
    "copying a file from outside the base path",
    `/file copy "storage-pool" name="${folder}/x.img"`,
    "outside-owner-area",
  ],
  ["a foreign subvolume", addSubvolume("Home"), "outside-owner-area"],
  ["removing a foreign subvolume", `${menu}/remove "home"`, "outside-owner-area"],
  ["a snapshot of a foreign subvolume", addSubvolume("s-1.0a1b2c3d", "home"), "outside-owner-area"],
  ["a snapshot without a hash", addSubvolume(ownSnapshot.slice(0, -9), "vol.0a1b2c3d"), "outside-owner-area"],
  ["a subvolume before the disk in it", `${menu}/remove "used"`, "file-before-disk"],
  ["making a snapshot writable", `${menu}/set "${ownSnapshot}" read-only="no"`, "snapshot-changed"],
];

for (const [name, command, rule] of broken) {
  Deno.test(`${name} breaks ${rule}`, async () => {
    assert.equal((await rulesOf([command]))[0], rule);
  });
}

const otherCluster: readonly (readonly [name: string, command: string])[] = [
  ["removing its subvolume", `${menu}/remove "${theirs}"`],
  ["removing its file, in the base path though it is", `/file remove "${folder}/${theirs}.img"`],
  ["copying its file", `/file copy "${folder}/${theirs}.img" name="${folder}/x.img"`],
  ["making something under its hash", addSubvolume(`${base}/v-4.ffffffff`)],
];

for (const [name, command] of otherCluster) {
  Deno.test(`with a known cluster of the client, ${name} of another cluster is outside its area`, async () => {
    assert.deepEqual(await rulesOf([command], ["0a1b2c3d"]), ["outside-owner-area"]);
    assert.deepEqual(await rulesOf([command]), []);
  });
}

Deno.test("a label that a file disk has too must not be used", async () => {
  const router = makeRouter();
  const rules: string[] = [];
  const area = { basePaths: [`/${folder}`], clusterHashes: undefined };
  const observe = watchOwnership(router, area, (rule) => rules.push(rule));
  await typeTo(router)(`${makeBasePath}; ${addCommand("ours")}`);
  const type = typeTo(router, { observe, understood() {} });
  const pool = router.pools()[0]!;
  const disk = router.disks.findBySlot("ours")!;
  router.disks.replace({ ...disk, pool: { ...pool.pool, mounted: false, mountPoint: "ours" } });
  await type(addSubvolume(`${base}/v-9.0a1b2c3d`));
  assert.deepEqual(rules, ["ambiguous-label"]);
});

Deno.test("a file must not be removed while its disk is late after a reboot", async () => {
  const router = makeRouter();
  const rules: string[] = [];
  const area = { basePaths: [`/${folder}`], clusterHashes: undefined };
  const observe = watchOwnership(router, area, (rule) => rules.push(rule));
  await typeTo(router)(`${makeBasePath}; ${addCommand("ours")}`);
  router.disks.hideFiles("late", true);
  const type = typeTo(router, { observe, understood() {} });
  await type(`/file remove "${folder}/ours.img"`);
  assert.deepEqual(rules, ["file-before-disk"]);
});

Deno.test("a subvolume that is not made because its pool is not mounted is still in the client's area", async () => {
  const router = makeRouter();
  const rules: string[] = [];
  const area = { basePaths: [`/${folder}`], clusterHashes: undefined };
  const observe = watchOwnership(router, area, (rule) => rules.push(rule));
  const disk = router.disks.findBySlot("storage-pool")!;
  router.disks.replace({ ...disk, pool: { ...disk.pool!, mounted: false } });
  const type = typeTo(router, { observe, understood() {} });
  assert.match(await type(addSubvolume(base)), /^failure: /);
  assert.deepEqual(rules, []);
});
