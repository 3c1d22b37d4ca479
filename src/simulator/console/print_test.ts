import assert from "node:assert/strict";
import { addCommand, typing } from "../../../tests/support/simulated_router.ts";

const cases: readonly (readonly [command: string, printed: readonly string[]])[] = [
  ['/disk print proplist=slot,size,comment where slot="p"', [
    "Flags: B - BLOCK-DEVICE",
    "Columns: SLOT, SIZE, COMMENT",
    "#   SLOT           SIZE  COMMENT",
    "3 B p     1 073 741 824  it is mine",
  ]],
  ["/disk print detail proplist=slot,mounted where mounted", [
    "Flags: B - BLOCK-DEVICE; M - MOUNTED",
    '2 BM slot="storage-pool"',
  ]],
  ['/disk print terse where slot="x"', []],
  ["/system identity print", ["name=MikroTik"]],
  ["/system package print", [
    "0 name=rose-storage version=7.24.4 disabled=no",
    "1 name=routeros version=7.24.4 disabled=no",
  ]],
  ["/disk/btrfs/subvolume/print proplist=default,fullname", ["0 DEFAULT fullname=<FS_ROOT>"]],
];

for (const [command, printed] of cases) {
  Deno.test(`${command} prints for people`, async () => {
    const type = await typing();
    await type(addCommand("p", 'comment="it is mine"'));
    assert.equal(await type(command), printed.map((line) => `${line}\r\n`).join(""));
  });
}
