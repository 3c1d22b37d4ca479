import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { statuses } from "./command.ts";
import { command, dataPdu, type Fixture, RawHost, withTarget } from "../../../tests/support/nvme_target.ts";

/** Runs a test on an I/O queue. */
async function onQueue(
  test: (io: RawHost, fixture: Fixture) => Promise<void>,
  options: { readonly flags?: number; readonly alignment?: number } = {},
): Promise<void> {
  await withTarget(async (fixture) => {
    using admin = await RawHost.join(fixture.target.port);
    const { controllerId } = admin;
    using io = await RawHost.join(fixture.target.port, { queueId: 1, controllerId, ...options });
    await test(io, fixture);
  });
}

async function contentOf(path: string, from: number, to: number): Promise<number[]> {
  return [...(await Deno.readFile(path)).subarray(from, to)];
}

async function digestOf(path: string): Promise<string> {
  return createHash("sha256").update(await Deno.readFile(path)).digest("hex");
}

const [flush, write, read, writeZeros] = [0x00, 0x01, 0x02, 0x08];
const twoBlocks = { type: 1, word10: 4, word12: 1, length: 1024 };

Deno.test("a write with its data in the same PDU reaches the file", async () => {
  await onQueue(async (io, { file }) => {
    const data = new Uint8Array(1024).fill(0xaa);
    await io.send(command({ opcode: write, id: 9, ...twoBlocks, data }));
    const { type, commandId, status } = await io.answer();
    assert.deepEqual([type, commandId, status], [5, 9, statuses.success]);
    assert.deepEqual(await contentOf(file, 2048, 3072), [...data]);
    assert.notEqual((await contentOf(file, 3072, 3073))[0], 0xaa);
  });
});

Deno.test("a write without data is asked for it, and reaches the file when all of it has come", async () => {
  await onQueue(async (io, { file }) => {
    await io.send(command({ opcode: write, id: 9, ...twoBlocks }));
    const request = await io.answer();
    assert.deepEqual([request.type, [...request.bytes.subarray(8, 20)]], [9, [
      ...[9, 0, 0, 0],
      ...[0, 0, 0, 0, 0, 4, 0, 0],
    ]]);
    const before = await contentOf(file, 2048, 3072);
    await io.send(dataPdu(9, 0, 0, new Uint8Array(512).fill(1), false));
    await io.send(command({ opcode: flush, id: 10, type: 1 }));
    assert.equal((await io.answer()).commandId, 10);
    assert.deepEqual(await contentOf(file, 2048, 3072), before);
    await io.send(dataPdu(9, 0, 512, new Uint8Array(512).fill(2), true));
    assert.deepEqual((await io.answer()).status, statuses.success);
    assert.deepEqual(await contentOf(file, 2559, 2561), [1, 2]);
  });
});

Deno.test("writes that wait for data are told apart", async () => {
  await onQueue(async (io, { file }) => {
    for (const id of [1, 2]) await io.send(command({ opcode: write, id, type: 1, word10: id, length: 512 }));
    const tags = [(await io.answer()).bytes[10]!, (await io.answer()).bytes[10]!];
    for (const id of [2, 1]) {
      await io.send(dataPdu(id, tags[id - 1]!, 0, new Uint8Array(512).fill(id), true));
      assert.equal((await io.answer()).commandId, id);
    }
    assert.deepEqual(await contentOf(file, 1023, 1025), [1, 2]);
  });
});

Deno.test("zeros are written, and holes stay holes", async () => {
  await onQueue(async (io, { file, target, access }) => {
    target.change("nqn.2000-02.com.mikrotik:a:1-ab12cd34", { ...access, sizeBytes: 1n << 30n });
    await io.send(command({ opcode: writeZeros, type: 1, word10: 0, word12: 8191 + 8192 }));
    assert.equal((await io.answer()).status, statuses.success);
    const { size } = await Deno.stat(file);
    assert.deepEqual([size, (await contentOf(file, 0, size)).every((byte) => byte === 0)], [4 << 20, true]);
  });
});

Deno.test("a read is one PDU of data and a completion, with the queue's head", async () => {
  await onQueue(async (io, { file }) => {
    for (const head of [2, 3]) {
      await io.send(command({ opcode: read, id: 7, ...twoBlocks }));
      const data = await io.answer();
      assert.deepEqual([data.type, data.flags, [...data.bytes.subarray(24)]], [
        ...[7, 4],
        await contentOf(file, 2048, 3072),
      ]);
      const { type, bytes } = await io.answer();
      assert.deepEqual([type, bytes[16]], [5, head]);
    }
  });
});

Deno.test("a host without flow control gets no completion behind its data", async () => {
  await onQueue(async (io) => {
    for (const id of [7, 8]) {
      await io.send(command({ opcode: read, id, ...twoBlocks }));
      const { type, flags, bytes } = await io.answer();
      assert.deepEqual([type, flags, bytes[8]], [7, 0x0c, id]);
    }
    await io.send(command({ opcode: flush, type: 1 }));
    assert.deepEqual([...(await io.answer()).bytes.subarray(16, 18)], [0xff, 0xff]);
  }, { flags: 0x04 });
});

Deno.test("data begins where the host wants it", async () => {
  await onQueue(async (io, { file }) => {
    await io.send(command({ opcode: read, id: 7, ...twoBlocks }));
    const { bytes } = await io.answer();
    assert.deepEqual([bytes[3], [...bytes.subarray(64)]], [64, await contentOf(file, 2048, 3072)]);
  }, { alignment: 15 });
});

const block = new Uint8Array(512);
const refused: readonly (readonly [name: string, pdu: Uint8Array, status: number])[] = [
  ["no such command", command({ opcode: 0x55, type: 1 }), statuses.invalidOpcode],
  ["another namespace", command({ opcode: read, ...twoBlocks, type: 2 }), statuses.invalidNamespace],
  ["all namespaces", command({ opcode: read, ...twoBlocks, type: -1 >>> 0 }), statuses.invalidNamespace],
  ["a read beyond the end", command({ opcode: read, ...twoBlocks, word10: 8191 }), statuses.outOfRange],
  ["a read far beyond it", command({ opcode: read, ...twoBlocks, word11: 0x8000_0000 }), statuses.outOfRange],
  [
    "a write beyond the end",
    command({ opcode: write, type: 1, word10: 8192, data: block }),
    statuses.outOfRange,
  ],
  ["less room than it reads", command({ opcode: read, ...twoBlocks, length: 512 }), statuses.dataLength],
  [
    "less data than it writes",
    command({ opcode: write, ...twoBlocks, length: 512, data: block }),
    statuses.dataLength,
  ],
  [
    "too much at once",
    command({ opcode: read, type: 1, word12: 256, length: 131_584 }),
    statuses.invalidField,
  ],
  [
    "more data than it may",
    command({ opcode: write, type: 1, word12: 256, length: 131_584 }),
    statuses.dataLength,
  ],
  ["more data than came", command({ opcode: write, type: 1, data: block, length: 513 }), statuses.dataLength],
  [
    "another kind of list",
    command({ opcode: read, ...twoBlocks, descriptor: 0x40 }),
    statuses.descriptorType,
  ],
];

for (const [name, pdu, status] of refused) {
  Deno.test(`an I/O command is refused, and the next one is not, for ${name}`, async () => {
    await onQueue(async (io, { file }) => {
      const before = await digestOf(file);
      await io.send(pdu);
      assert.deepEqual((await io.answer()).status, status);
      await io.send(command({ opcode: flush, type: -1 >>> 0 }));
      assert.deepEqual((await io.answer()).status, statuses.success);
      assert.equal(await digestOf(file), before);
    });
  });
}

Deno.test("a disk in memory cannot be written", async () => {
  await withTarget(async ({ target, access }) => {
    target.serve("nqn.memory", undefined, access);
    using admin = await RawHost.join(target.port, { name: "nqn.memory" });
    const { controllerId } = admin;
    using io = await RawHost.join(target.port, { queueId: 1, controllerId, name: "nqn.memory" });
    await io.send(command({ opcode: write, type: 1, data: block }));
    assert.equal((await io.answer()).status, statuses.writeProtected);
    await io.send(command({ opcode: flush, type: 1 }));
    assert.equal((await io.answer()).status, statuses.success);
  });
});

Deno.test("after a withdrawal not one more block of a continuous writer reaches the file", async () => {
  await onQueue(async (io, { target, file }) => {
    const writer = (async () => {
      for (let value = 1;; value++) {
        const data = new Uint8Array(8192).fill(value % 251);
        await io.send(command({ opcode: write, type: 1, word12: 15, data }));
      }
    })().catch((error) => String(error));
    await io.answer();
    await io.answer();
    target.withdraw("nqn.2000-02.com.mikrotik:a:1-ab12cd34");
    const atCut = await contentOf(file, 0, 8192);
    await io.ended();
    await writer;
    assert.deepEqual(await contentOf(file, 0, 8192), atCut);
    assert.equal(atCut.every((byte) => byte === atCut[0]), true);
  });
});
