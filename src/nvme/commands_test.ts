import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { parseAddress } from "./address.ts";
import {
  connectCommand,
  discardBlocks,
  flush,
  getProperty,
  identify,
  readBlocks,
  readDiscoveryLog,
  requestQueues,
  setProperty,
  writeBlocks,
} from "./commands.ts";

/** The bytes that are not zero, by their offset. */
function sparse(bytes: Uint8Array): Record<number, number> {
  return Object.fromEntries([...bytes].flatMap((byte, at) => byte === 0 ? [] : [[at, byte]]));
}

const descriptor = { 1: 0x40, 39: 0x5a };

Deno.test("commands lay out their queue entry as specified", () => {
  assert.deepEqual(sparse(getProperty(0, 8).entry), { ...descriptor, 0: 0x7f, 4: 0x04, 40: 1 });
  assert.deepEqual(sparse(getProperty(0x1c, 4).entry), { ...descriptor, 0: 0x7f, 4: 0x04, 44: 0x1c });
  assert.deepEqual(sparse(setProperty(0x14, 0x460001).entry), {
    ...descriptor,
    ...{ 0: 0x7f, 44: 0x14, 48: 1, 50: 0x46 },
  });
  assert.deepEqual(sparse(identify("descriptors", 1).entry), {
    ...descriptor,
    ...{ 0: 0x06, 4: 1, 33: 0x10, 40: 3 },
  });
  assert.deepEqual(sparse(requestQueues(3).entry), { ...descriptor, 0: 0x09, 40: 7, 44: 2, 46: 2 });
  assert.deepEqual(sparse(readDiscoveryLog(2 ** 34, 2 ** 19).entry), {
    ...descriptor,
    ...{ 0: 0x02, 34: 8, 40: 0x70, 42: 0xff, 43: 0xff, 44: 1, 52: 4 },
  });
  assert.deepEqual(sparse(readBlocks(2n ** 33n + 5n, 256, 131_072).entry), {
    ...descriptor,
    ...{ 0: 0x02, 4: 1, 34: 2, 40: 5, 44: 2, 48: 255 },
  });
  assert.deepEqual(sparse(flush().entry), { ...descriptor, 4: 1 });
});

Deno.test("commands that write bring their data in their own PDU", () => {
  const data = new Uint8Array(8192).fill(7);
  const write = writeBlocks(2n ** 33n + 5n, 16, data);
  const inCapsule = { 1: 0x40, 39: 0x01 };
  assert.deepEqual(sparse(write.entry), {
    ...inCapsule,
    ...{ 0: 0x01, 4: 1, 33: 0x20, 40: 5, 44: 2, 48: 15 },
  });
  assert.equal(write.data, data);
  const { entry, data: range } = discardBlocks(2n ** 33n + 5n, 258);
  assert.deepEqual(sparse(entry), { ...inCapsule, 0: 0x09, 4: 1, 32: 16, 44: 0b100 });
  assert.deepEqual([range.length, sparse(range)], [16, { 4: 2, 5: 1, 8: 5, 12: 2 }]);
});

const address = {
  address: "127.0.0.1",
  port: 4420,
  nqn: "nqn.a",
  hostNqn: "nqn.host",
  hostId: "01020304-0506-0708-090A-0b0c0d0e0f10",
};

Deno.test("connectCommand() names host and subsystem, in the command's own PDU", () => {
  const { hostIdBytes: hostId, nqn, hostNqn } = parseAddress(address);
  const { entry, data } = connectCommand({
    ...{ queueId: 1, depth: 32, controllerId: 0x0102, keepAliveMs: 0x3456, nqn, hostNqn, hostId },
  });
  assert.deepEqual(sparse(entry), {
    ...{ 0: 0x7f, 1: 0x40, 4: 1, 33: 4, 39: 1, 42: 1, 44: 31, 48: 0x56, 49: 0x34 },
  });
  assert.equal(data.length, 1024);
  assert.deepEqual([...data.subarray(0, 18)], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 2, 1]);
  const text = (at: number) => new TextDecoder().decode(data.subarray(at, at + 9)).replaceAll("\0", ".");
  assert.deepEqual([text(256), text(512)], ["nqn.a....", "nqn.host."]);
});

for (
  const [name, change] of [
    ["no NQN", { nqn: "" }],
    ["an NQN that is too long", { nqn: "n".repeat(224) }],
    ["an NQN with a NUL", { nqn: "a\0b" }],
    ["a host NQN that is too long in bytes", { hostNqn: "ü".repeat(112) }],
    ["a host id that is no UUID", { hostId: "01020304-0506-0708-090a" }],
    ["a host id that is no hex", { hostId: "g".repeat(32) }],
    ["port 0", { port: 0 }],
    ["port 65536", { port: 65_536 }],
    ["half a port", { port: 0.5 }],
  ] as const
) {
  Deno.test(`parseAddress() throws invalid for ${name}`, () => {
    assert.throws(() => parseAddress({ ...address, ...change }), refusal("invalid"));
  });
}
