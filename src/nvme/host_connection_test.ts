import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { call, nqn, withTarget } from "../../tests/support/nvme_target.ts";
import { VolumeError } from "../volume/errors.ts";
import { discover } from "./discover.ts";
import { connectSubsystem } from "./host_connection.ts";
import {
  data,
  initResponse,
  lastData,
  response,
  ScriptedStream,
  settle,
  TestStream,
} from "../../tests/support/nvme_host.ts";
import { refusalOf } from "./refusal.ts";
import { type ByteStream, openTcp } from "./stream.ts";
import { viewOf } from "./wire.ts";

const where = {
  address: "127.0.0.1",
  port: 4420,
  nqn,
  hostNqn: "nqn.host",
  hostId: "11111111-1111-4111-8111-111111111111",
};

function isUnavailable(reason: RegExp) {
  return (error: unknown) => VolumeError.is(error, "unavailable") && reason.test(error.message);
}

Deno.test("connectSubsystem() throws unavailable where nothing listens, and for an unknown name", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  await assert.rejects(connectSubsystem({ ...where, port }, call()), isUnavailable(/nothing listens there/));
  const open = () => Promise.reject(new Error("failed to lookup address information"));
  await assert.rejects(
    connectSubsystem(where, call(), { open }),
    isUnavailable(/connection failed \(failed to/),
  );
  const denied = () => Promise.reject(new Deno.errors.NotCapable("Requires net access"));
  await assert.rejects(connectSubsystem(where, call(), { open: denied }), isUnavailable(/ALLOW_NET/));
  const unroutable = () => Promise.reject(Object.assign(new Error("os error 113"), { code: "EHOSTUNREACH" }));
  await assert.rejects(
    connectSubsystem(where, call(), { open: unroutable }),
    isUnavailable(/no route to it/),
  );
});

Deno.test("connectSubsystem() throws invalid before it opens anything when the address is invalid", async () => {
  const open = () => assert.fail("opened");
  await assert.rejects(
    connectSubsystem({ ...where, hostId: "me" }, call(), { open }),
    refusal("invalid"),
  );
});

Deno.test("connectSubsystem() gives up at its own limit when the call has none, and leaves nothing open", async () => {
  const [clock, stream] = [new FakeClock(), new TestStream()];
  const connecting = connectSubsystem(where, fakeCall(clock), { clock, open: () => Promise.resolve(stream) });
  const refused = assert.rejects(connecting, isUnavailable(/did not answer in time: ms=15000/));
  await clock.advance(15_000);
  await refused;
  assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
});

Deno.test("connectSubsystem() closes a connection that comes when the call is over", async () => {
  const [clock, stream] = [new FakeClock(), new TestStream()];
  const { promise, resolve } = Promise.withResolvers<ByteStream>();
  const connecting = connectSubsystem(where, fakeCall(clock, 100), { clock, open: () => promise });
  const refused = assert.rejects(connecting, refusal("deadline"));
  await clock.advance(100);
  await refused;
  resolve(stream);
  await clock.advance(0);
  assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
});

Deno.test("connectSubsystem() ends when its call is cancelled, whatever it waits for", async () => {
  for (const answered of [0, 1, 2, 3]) {
    const clock = new FakeClock();
    const stream = controller(answered);
    const context = fakeCall(clock);
    const connecting = connectSubsystem(where, context, { clock, open: () => Promise.resolve(stream) });
    const refused = assert.rejects(connecting, refusal("cancelled", /./));
    await clock.advance(0);
    context.cancel();
    await refused;
    assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
  }
});

/** A target that answers its first `most` PDUs as a controller does, except those that the test answers. */
function controller(
  most: number,
  say: (
    opcode: number,
    count: number,
  ) => { readonly result?: bigint; readonly code?: number; readonly type?: number } = () => ({}),
): ScriptedStream {
  let count = 0;
  return new ScriptedStream((pdu) => {
    if (++count > most) return [];
    if (pdu[0] === 0) return [initResponse()];
    const id = viewOf(pdu).getUint16(10, true);
    const opcode = pdu[8]!;
    const said = say(opcode, count);
    if (opcode === 0x06 && said.code === undefined) {
      return [data(id, 0, new Uint8Array(4096), lastData), response(id)];
    }
    const capabilities = opcode === 0x7f && pdu[12] === 0x04 && pdu[48] === 1;
    return [response(id, { result: capabilities ? 0x20_0f01_007fn : 1n, ...said })];
  });
}

const unable: readonly (readonly [name: string, say: Parameters<typeof controller>[1], reason: RegExp])[] = [
  ["wants a password", (_opcode, count) => count === 2 ? { result: 0x2_0001n } : {}, /wants a password/],
  ["refuses", (_opcode, count) => count === 2 ? { type: 1, code: 0x81 } : {}, /no controller to spare/],
  ["has queues that are too short", (_opcode, count) => count === 3 ? { result: 3n } : {}, /mqes=3/],
  ["fails", (_opcode, count) => count === 5 ? { result: 2n } : {}, /because it failed/],
  ["does not say who it is", (opcode) => opcode === 0x06 ? { code: 0x06 } : {}, /identify .*internal error/],
  [
    "gives no queues",
    (opcode) => opcode === 0x09 ? { code: 0x02 } : {},
    /agree on NVMe queues .*invalid field/,
  ],
];

for (const [name, say, reason] of unable) {
  Deno.test(`connectSubsystem() throws unavailable, and leaves nothing open, when the target ${name}`, async () => {
    const clock = new FakeClock();
    const stream = controller(Infinity, say);
    const connecting = connectSubsystem(where, fakeCall(clock), {
      clock,
      open: () => Promise.resolve(stream),
    });
    await assert.rejects(connecting, isUnavailable(reason));
    assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
  });
}

Deno.test("connectSubsystem() waits until the controller is ready", async () => {
  const clock = new FakeClock();
  const streams: ScriptedStream[] = [];
  const open = () => {
    const stream = controller(Infinity, (_opcode, count) => count > 4 && count < 7 ? { result: 0n } : {});
    streams.push(stream);
    return Promise.resolve(stream);
  };
  const connecting = connectSubsystem(where, fakeCall(clock), { clock, open });
  for (const ms of [50, 49]) {
    await settle();
    await clock.advance(ms);
  }
  assert.equal(streams.length, 1);
  await clock.advance(1);
  const connection = await connecting;
  assert.equal(streams.length, 2);
  await assert.rejects(
    connection.namespaceBytes(fakeCall(clock)),
    isUnavailable(/namespace 1 because the subsystem has none/),
  );
  await connection[Symbol.asyncDispose]();
  assert.deepEqual([streams.map(({ closed }) => closed), clock.waiting], [[true, true], 0]);
});

Deno.test("a connection keeps itself alive, and ends when the target stops answering", async () => {
  const clock = new FakeClock();
  const streams: ScriptedStream[] = [];
  let silent = false;
  const open = () => {
    const stream = controller(Infinity);
    streams.push(stream);
    stream.isSilent = () => silent;
    return Promise.resolve(stream);
  };
  const connection = await connectSubsystem(where, fakeCall(clock), { clock, open, keepAliveMs: 10_000 });
  const alive = () => streams[0]!.written.filter((pdu) => pdu[8] === 0x18).length;
  await clock.advance(25_000);
  assert.equal(alive(), 5);
  silent = true;
  const asked = assert.rejects(
    connection.namespaces(fakeCall(clock)),
    isUnavailable(/does not answer any more/),
  );
  let reason: string | undefined;
  void connection.ended.then((text) => reason = text);
  await clock.advance(14_999);
  assert.equal(reason, undefined);
  await clock.advance(1);
  await asked;
  assert.equal(reason, "the target does not answer any more");
  assert.deepEqual([streams.map(({ closed }) => closed), clock.waiting], [[true, true], 0]);
  await connection[Symbol.asyncDispose]();
});

Deno.test("a refused keep-alive counts as an answer", async () => {
  const clock = new FakeClock();
  const open = () => Promise.resolve(controller(Infinity, (opcode) => opcode === 0x18 ? { code: 0x1a } : {}));
  await using connection = await connectSubsystem(where, fakeCall(clock), { clock, open, keepAliveMs: 1000 });
  await clock.advance(10_000);
  await assert.rejects(connection.keepAlive(fakeCall(clock)), /invalid keep-alive timeout/);
  assert.deepEqual(await connection.namespaces(fakeCall(clock)), []);
});

Deno.test("when one queue ends, the connection ends the other one", async () => {
  for (const broken of [0, 1]) {
    const clock = new FakeClock();
    const streams: ScriptedStream[] = [];
    const open = () => Promise.resolve(streams[streams.push(controller(Infinity)) - 1]!);
    const connection = await connectSubsystem(where, fakeCall(clock), { clock, open });
    streams[broken]!.feed(null);
    assert.equal(await connection.ended, "the target closed the connection");
    assert.deepEqual([streams.map(({ closed }) => closed), clock.waiting], [[true, true], 0]);
    await connection[Symbol.asyncDispose]();
  }
});

Deno.test("a refused host leaves no connection at the target", async () => {
  await withTarget(async ({ target, where, access }) => {
    target.change(nqn, { ...access, hosts: ["nqn.else"] });
    await assert.rejects(connectSubsystem(where, call()), (error) => refusalOf(error) === "host");
    while (target.connections > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  });
});

/** Opens connections on which something happens before each read of a log. */
function openAnd(occurs: () => void) {
  return async (address: string, port: number): Promise<ByteStream> => {
    const stream = await openTcp(address, port);
    return {
      read: (into) => stream.read(into),
      close: () => stream.close(),
      write: (bytes) => {
        if (bytes[0] === 4 && bytes[8] === 0x02) occurs();
        return stream.write(bytes);
      },
    };
  };
}

Deno.test("write() puts blocks where they belong, in as many commands as the target needs, and discard() takes them back", async () => {
  await withTarget(async ({ where, file }) => {
    await using host = await connectSubsystem(where, call());
    const before = await Deno.readFile(file);
    // More than 16 commands of 8 KiB, and an odd number of blocks.
    const written = Uint8Array.from({ length: 512 * 401 }, (_, at) => at % 253);
    await host.write(3n, written, call());
    await host.flush(call());
    const after = await Deno.readFile(file);
    const [from, to] = [512 * 3, 512 * 3 + written.length];
    assert.deepEqual(after.subarray(from, to), written);
    assert.deepEqual(await host.read(3n, 401, call()), written);
    assert.deepEqual(after.subarray(0, from), before.subarray(0, from));
    assert.deepEqual(after.subarray(to), before.subarray(to));
    await host.discard(8n, 128, call());
    const trimmed = await Deno.readFile(file);
    assert.ok(trimmed.subarray(4096, 4096 + 65_536).every((byte) => byte === 0));
    assert.deepEqual(trimmed.subarray(4096 + 65_536), after.subarray(4096 + 65_536));
    assert.ok((await Deno.stat(file)).blocks! < before.length / 512, "the file takes less room");
  });
});

Deno.test("write() and discard() throw for blocks that are none, and change nothing", async () => {
  await withTarget(async ({ where, file }) => {
    await using host = await connectSubsystem(where, call());
    const before = await Deno.readFile(file);
    for (const data of [new Uint8Array(0), new Uint8Array(500), new Uint8Array((16 << 20) + 512)]) {
      await assert.rejects(host.write(0n, data, call()), refusal("invalid"));
    }
    await assert.rejects(host.discard(-1n, 1, call()), refusal("invalid"));
    await assert.rejects(host.write(8191n, new Uint8Array(1024), call()), isUnavailable(/out of range/));
    await assert.rejects(host.discard(8191n, 2, call()), isUnavailable(/out of range/));
    assert.deepEqual(await Deno.readFile(file), before);
  });
});

Deno.test("discover() reads a log again that changed during the read", async () => {
  await withTarget(async ({ target, where, access }) => {
    let reads = 0;
    const open = openAnd(() => ++reads === 2 && target.serve("nqn.late", undefined, access));
    const found = await discover(where, call(), { open });
    assert.deepEqual([found.map((subsystem) => subsystem.nqn), reads], [[nqn, "nqn.late"], 6]);
  });
});

Deno.test("discover() throws unavailable for a log that keeps changing", async () => {
  await withTarget(async ({ target, where, access }) => {
    let reads = 0;
    const open = openAnd(() => target.serve(`nqn.${reads++}`, undefined, access));
    await assert.rejects(discover(where, call(), { open }), isUnavailable(/changes all the time/));
  });
});
