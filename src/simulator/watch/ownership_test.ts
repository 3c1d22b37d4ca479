import assert from "node:assert/strict";
import { addCommand, makeBasePath, makeRouter, typeTo } from "../simulator_test_support.ts";
import { watchOwnership } from "./ownership.ts";

async function rulesOf(commands: readonly string[]): Promise<string[]> {
  const router = makeRouter();
  const rules: string[] = [];
  const observe = watchOwnership(router, ["/storage-pool/metal-csi"], (rule) => rules.push(rule));
  await typeTo(router)(`${makeBasePath}; ${addCommand("ours")}`);
  const type = typeTo(router, { mayWrite: true, observe, understood() {} });
  for (const command of commands) await type(command);
  return rules;
}

const folder = "storage-pool/metal-csi";

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
  ["a subvolume with a name of the own form", ['/disk/btrfs/subvolume/add fs="storage-pool" name="v-1"']],
];

for (const [name, commands] of clean) {
  Deno.test(`nothing is wrong with ${name}`, async () => {
    assert.deepEqual(await rulesOf(commands), []);
  });
}

const broken: readonly (readonly [name: string, command: string, rule: string])[] = [
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
  ["a foreign subvolume", '/disk/btrfs/subvolume/add fs="storage-pool" name="Home"', "outside-owner-area"],
];

for (const [name, command, rule] of broken) {
  Deno.test(`${name} breaks ${rule}`, async () => {
    assert.equal((await rulesOf([command]))[0], rule);
  });
}
