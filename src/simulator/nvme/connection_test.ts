import assert from "node:assert/strict";
import { statuses } from "./command.ts";
import {
  command,
  connectData,
  dataPdu,
  type Fixture,
  hostNqn,
  initRequest,
  nqn,
  RawHost,
  withTarget,
} from "../../../tests/support/nvme_target.ts";

const fabrics = 0x7f;

async function onAdmin(test: (admin: RawHost, fixture: Fixture) => Promise<void>): Promise<void> {
  await withTarget(async (fixture) => {
    using admin = await RawHost.join(fixture.target.port);
    await test(admin, fixture);
  });
}

const connects: readonly (readonly [
  name: string,
  pdu: Uint8Array,
  status: number,
  result: number,
])[] = [
  ["an unknown subsystem", connect({ name: "nqn.none" }), statuses.connectParameters, 0x1_0100],
  ["no subsystem", connect({ name: "" }), statuses.connectParameters, 0x1_0100],
  ["a name without an end", connect({ name: "n".repeat(256) }), statuses.connectParameters, 0x1_0100],
  ["no host", connect({ host: "" }), statuses.connectParameters, 0x1_0200],
  ["a host without an end", connect({ host: "h".repeat(512) }), statuses.connectParameters, 0x1_0200],
  ["a controller that it chooses", connect({ controllerId: 1 }), statuses.connectParameters, 0x1_0010],
  ["a queue of one entry", connect({}, { depth: 1 }), statuses.connectParameters, 44],
  ["a queue of too many entries", connect({}, { depth: 129 }), statuses.connectParameters, 44],
  ["a queue of no controller", connect({}, { queueId: 1 }), statuses.connectParameters, 0x1_0010],
  ["a queue too many", connect({}, { queueId: 17 }), statuses.connectParameters, 42],
  [
    "too little data",
    command({ opcode: fabrics, type: 1, data: new Uint8Array(512) }),
    statuses.dataLength,
    0,
  ],
  ["another format", connect({}, { word10: 1 }), statuses.connectFormat, 0],
];

function connect(
  { name = nqn, host = hostNqn, controllerId = 0xffff },
  more: Partial<Parameters<typeof command>[0]> = {},
): Uint8Array {
  const data = connectData(controllerId, name, host).subarray(0, 1024);
  return command({ opcode: fabrics, type: 1, depth: 32, data, ...more });
}

for (const [name, pdu, status, result] of connects) {
  Deno.test(`Connect is refused, and told what is wrong, for ${name}`, async () => {
    await withTarget(async ({ target }) => {
      using host = await RawHost.connect(target.port);
      await host.send(pdu);
      const answer = await host.answer();
      assert.deepEqual([answer.status, answer.result], [status, result]);
    });
  });
}

Deno.test("an I/O queue belongs to the host that made the controller, and has its number once", async () => {
  await withTarget(async ({ target }) => {
    using admin = await RawHost.join(target.port);
    const { controllerId } = admin;
    const attempt = async (data: Uint8Array) => {
      using host = await RawHost.connect(target.port);
      await host.send(command({ opcode: fabrics, type: 1, depth: 32, queueId: 1, data }));
      return (await host.answer()).status;
    };
    assert.equal(await attempt(connectData(controllerId, nqn, "nqn.another")), statuses.connectParameters);
    using _io = await RawHost.join(target.port, { queueId: 1, controllerId });
    assert.equal(await attempt(connectData(controllerId, nqn)), statuses.connectParameters);
  });
});

Deno.test("an I/O queue is refused before the controller is enabled", async () => {
  await withTarget(async ({ target }) => {
    using admin = await RawHost.connect(target.port);
    await admin.send(connect({}));
    const { result: controllerId } = await admin.answer();
    await assert.rejects(RawHost.join(target.port, { queueId: 1, controllerId }), /refused: 182/);
  });
});

Deno.test("an I/O queue ends with its admin queue", async () => {
  await withTarget(async ({ target }) => {
    const admin = await RawHost.join(target.port);
    using io = await RawHost.join(target.port, { queueId: 1, controllerId: admin.controllerId });
    admin[Symbol.dispose]();
    await io.ended();
  });
});

Deno.test("nothing is carried out before Connect, nor before the controller is enabled", async () => {
  await withTarget(async ({ target }) => {
    using host = await RawHost.connect(target.port);
    await host.send(command({ opcode: 0x18 }));
    assert.equal((await host.answer()).status, statuses.sequence);
    await host.send(connect({}));
    assert.equal((await host.answer()).status, statuses.success);
    await host.send(command({ opcode: 0x18 }));
    assert.equal((await host.answer()).status, statuses.sequence);
    await host.send(connect({}));
    assert.equal((await host.answer()).status, statuses.sequence);
  });
});

Deno.test("a controller reports its capabilities and its state, and shuts down when it is told to", async () => {
  await onAdmin(async (admin) => {
    const get = async (offset: number, size = 0) => {
      await admin.send(command({ opcode: fabrics, type: 4, word10: size, word11: offset }));
      const { status, bytes } = await admin.answer();
      return status === 0 ? new DataView(bytes.buffer, 8).getBigUint64(0, true) : `status ${status}`;
    };
    assert.equal(await get(0x00, 1), 0x20_0f01_007fn);
    assert.equal(await get(0x08), 0x1_0300n);
    assert.equal(await get(0x14), 0x46_0001n);
    assert.equal(await get(0x1c), 1n);
    await admin.send(command({ opcode: fabrics, type: 0, word11: 0x14, word12: 0x46_4001 }));
    await admin.answer();
    assert.equal(await get(0x1c), 9n);
    assert.equal(await get(0x1c, 1), `status ${statuses.invalidField}`);
    assert.equal(await get(0x24), `status ${statuses.invalidField}`);
    await admin.send(command({ opcode: fabrics, type: 0, word11: 0x08 }));
    assert.equal((await admin.answer()).status, statuses.invalidField);
    await admin.send(command({ opcode: fabrics, type: 8 }));
    assert.equal((await admin.answer()).status, statuses.invalidOpcode);
  });
});

const identify = (what: number, namespace = 1) =>
  command({ opcode: 0x06, type: namespace, word10: what, length: 4096 });
const log = (page: number, bytes: number, offset = 0) =>
  command({ opcode: 0x02, word10: page | (bytes / 4 - 1) << 16, word12: offset, length: bytes });

const admin: readonly (readonly [name: string, pdu: Uint8Array, status: number])[] = [
  ["an unknown command", command({ opcode: 0x55 }), statuses.invalidOpcode],
  ["an unknown thing to identify", identify(0x55), statuses.invalidField],
  ["a namespace that is not there", identify(0, 2), statuses.invalidNamespace],
  ["the ids of another", identify(3, 2), statuses.invalidNamespace],
  ["an unknown log page", log(0x55, 512), statuses.logPage],
  ["the discovery log of a disk", log(0x70, 1024), statuses.logPage],
  ["a log from an odd byte on", log(2, 512, 3), statuses.invalidField],
  [
    "a giant log",
    command({ opcode: 0x02, word10: 0xffff_0002, word11: 0xffff, length: 4 }),
    statuses.invalidField,
  ],
  ["a log of another length", command({ opcode: 0x02, word10: 2, length: 512 }), statuses.dataLength],
  ["an unknown feature to set", command({ opcode: 0x09, word10: 0x55 }), statuses.invalidField],
  ["an unknown feature to get", command({ opcode: 0x0a, word10: 0x55 }), statuses.invalidField],
];

for (const [name, pdu, status] of admin) {
  Deno.test(`an admin command is refused, and the next one is not, for ${name}`, async () => {
    await onAdmin(async (admin) => {
      await admin.send(pdu);
      assert.equal((await admin.answer()).status, status);
      await admin.send(command({ opcode: 0x18 }));
      assert.equal((await admin.answer()).status, statuses.success);
    });
  });
}

Deno.test("features are kept, and queues granted up to a limit", async () => {
  await onAdmin(async (admin) => {
    const feature = async (opcode: number, word10: number, word11 = 0) => {
      await admin.send(command({ opcode, word10, word11 }));
      return (await admin.answer()).result;
    };
    assert.equal(await feature(0x09, 7, 0x0001_0003), 0x0001_0003);
    assert.equal(await feature(0x09, 7, 0x003f_003f), 0x000f_000f);
    assert.equal(await feature(0x0a, 7), 0x000f_000f);
    await feature(0x09, 0x0b, 0x100);
    assert.equal(await feature(0x0a, 0x0b), 0x100);
    await feature(0x09, 0x0f, 5000);
    assert.equal(await feature(0x0a, 0x0f), 5000);
    assert.equal(await feature(0x0a, 0x06), 1);
  });
});

Deno.test("a host that wants to know is told once of a disk that grows, until it has read it", async () => {
  await onAdmin(async (admin, { target, access }) => {
    const grow = (sizeBytes: bigint) => target.change(nqn, { ...access, sizeBytes });
    const listed = async () => {
      await admin.send(log(4, 4096));
      const { bytes } = await admin.answer();
      await admin.answer();
      return bytes[24];
    };
    await admin.send(command({ opcode: 0x09, word10: 0x0b, word11: 0x100 }));
    await admin.answer();
    for (const id of [50, 51]) await admin.send(command({ opcode: 0x0c, id }));
    await admin.send(command({ opcode: 0x18, id: 1 }));
    assert.equal((await admin.answer()).commandId, 1);
    grow(8n << 20n);
    const { commandId, result } = await admin.answer();
    assert.deepEqual([commandId, result], [50, 0x04_00_02]);
    grow(9n << 20n);
    assert.deepEqual([await listed(), await listed()], [1, 0]);
    grow(10n << 20n);
    assert.equal((await admin.answer()).commandId, 51);
    await listed();
    grow(11n << 20n);
    await admin.send(command({ opcode: 0x0c, id: 52 }));
    assert.equal((await admin.answer()).commandId, 52);
  });
});

Deno.test("a host that does not want to know is not told of a disk that grows", async () => {
  await onAdmin(async (admin, { target, access }) => {
    await admin.send(command({ opcode: 0x09, word10: 0x0b, word11: 0 }));
    await admin.answer();
    await admin.send(command({ opcode: 0x0c, id: 50 }));
    target.change(nqn, { ...access, sizeBytes: 8n << 20n });
    await admin.send(command({ opcode: 0x18, id: 1 }));
    assert.equal((await admin.answer()).commandId, 1);
  });
});

Deno.test("event requests are kept up to a limit", async () => {
  await onAdmin(async (admin) => {
    for (const id of [1, 2, 3, 4, 5]) await admin.send(command({ opcode: 0x0c, id }));
    const { commandId, status } = await admin.answer();
    assert.deepEqual([commandId, status], [5, statuses.eventLimit]);
  });
});

const fatalities: readonly (readonly [name: string, pdus: readonly Uint8Array[], status: number])[] = [
  ["a second first PDU", [initRequest()], 2],
  ["an unknown PDU", [Uint8Array.of(0xee, 0, 8, 0, 8, 0, 0, 0)], 1],
  ["data that was not asked for", [dataPdu(1, 0, 0, new Uint8Array(4), true)], 1],
  ["data of another command", [
    command({ opcode: 0x01, id: 1, length: 512 }),
    dataPdu(2, 0, 0, new Uint8Array(512), true),
  ], 1],
  ["data out of order", [
    command({ opcode: 0x01, id: 1, length: 512 }),
    dataPdu(1, 0, 256, new Uint8Array(256), true),
  ], 4],
  ["too much data", [
    command({ opcode: 0x01, id: 1, length: 512 }),
    dataPdu(1, 0, 0, new Uint8Array(513), true),
  ], 4],
  ["data that ends early", [
    command({ opcode: 0x01, id: 1, length: 512 }),
    dataPdu(1, 0, 0, new Uint8Array(256), true),
  ], 1],
  ["data that never ends", [
    command({ opcode: 0x01, id: 1, length: 512 }),
    dataPdu(1, 0, 0, new Uint8Array(512), false),
  ], 1],
];

for (const [name, pdus, status] of fatalities) {
  Deno.test(`the connection ends, and says why, after ${name}`, async () => {
    await onAdmin(async (admin) => {
      for (const pdu of pdus) await admin.send(pdu);
      let answer = await admin.answer();
      if (answer.type === 9) answer = await admin.answer();
      assert.deepEqual([answer.type, answer.bytes[8]], [3, status]);
      await admin.ended();
    });
  });
}

Deno.test("the connection ends without an answer when the host ends it", async () => {
  await onAdmin(async (admin) => {
    await admin.send(Uint8Array.of(2, 0, 24, 0, 24, ...new Uint8Array(19)));
    await admin.ended();
  });
});

Deno.test("the connection ends when it begins with anything but the first PDU", async () => {
  await withTarget(async ({ target }) => {
    using host = await RawHost.connect(target.port, { initialise: false });
    await host.send(command({ opcode: 0x18 }));
    assert.deepEqual([...(await host.answer()).bytes.subarray(0, 9)], [3, 0, 24, 0, 24, 0, 0, 0, 2]);
  });
});

Deno.test("a host that vanishes in the middle of anything is forgotten", async () => {
  await withTarget(async ({ target }) => {
    for (const length of [0, 1, 60, 128]) {
      const host = await RawHost.connect(target.port, { initialise: false });
      await host.send(initRequest().subarray(0, length));
      host[Symbol.dispose]();
    }
    const io = await RawHost.join(target.port);
    await io.send(command({ opcode: 0x01, id: 1, length: 512 }));
    await io.answer();
    io[Symbol.dispose]();
    while (target.connections > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  });
});
