import assert from "node:assert/strict";
import { addCommand, typing } from "../simulator_test_support.ts";

const cases: readonly (readonly [command: string, printed: readonly string[]])[] = [
  ['/disk print proplist=slot,size,comment where slot="p"', ["3 slot=p comment=it is mine size=1073741824"]],
  ["/disk print detail proplist=slot,mounted where mounted", ["2 MOUNTED slot=storage-pool"]],
  ['/disk print terse where slot="x"', []],
  ["/system identity print", ["name=MikroTik"]],
  ["/system package print", [
    "0 name=rose-storage version=7.24 disabled=no",
    "1 name=routeros version=7.24 disabled=no",
  ]],
  ["/disk/btrfs/subvolume/print proplist=default,fullname", ["0 DEFAULT fullname=<FS_ROOT>"]],
];

for (const [command, printed] of cases) {
  Deno.test(`${command} prints a line an item, for people`, async () => {
    const type = await typing();
    await type(addCommand("p", 'comment="it is mine"'));
    assert.equal(await type(command), printed.map((line) => `${line}\r\n`).join(""));
  });
}
