// Every error line that was seen on a router, provoked and printed completely.
import assert from "node:assert/strict";
import {
  addCommand,
  anyone,
  makeBasePath,
  makeRouter,
  typeTo,
} from "../../../tests/support/simulated_router.ts";

const lines: readonly (readonly [command: string, printed: string])[] = [
  ["foo", "bad command name foo (line 1 column 1)"],
  ['/disk print where slot="a"]', "syntax error (line 1 column 27)"],
  ["/disk print foo=bar", "expected end of command (line 1 column 13)"],
  ["/disk set foo=bar", "expected end of command (line 1 column 14)"],
  ['/disk remove "x"', "no such item"],
  ["/disk remove *FF", "no such item (4)"],
  ["/disk remove", "expected item id (line 1 column 13)"],
  [addCommand("a"), "failure: already have such slot"],
  [makeBasePath, "failure: already have such file"],
  ['/disk add type="tape"', "input does not match any value of type"],
  [
    '/disk set "a" nvme-tcp-server-port="44x"',
    "value of nvme-tcp-server-port contains invalid trailing characters",
  ],
  ['/disk set "a" nvme-tcp-server-port="0"', "value of nvme-tcp-server-port out of range (1..65535)"],
  ['/disk remove "storage-pool"', "could not unmount, stop using it first"],
  ['/file set "storage-pool/metal-csi/a.img" contents="x"', "action cancelled"],
  [':if (1=1) do={:error "so be it"} else={:put "else"}', "so be it"],
];

for (const [command, printed] of lines) {
  Deno.test(`${JSON.stringify(command)} prints ${JSON.stringify(printed)}`, async () => {
    const type = typeTo(makeRouter());
    await type(`${makeBasePath}; ${addCommand("a")}`);
    assert.equal(await type(`${command}; :put "after"`), `${printed}\r\n`);
  });
}

Deno.test("without the policy write, an add prints this", async () => {
  const type = typeTo(makeRouter(), { ...anyone, mayWrite: false });
  assert.equal(await type(addCommand("a")), "not enough permissions (9)\r\n");
});
