import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { viewOf } from "./command.ts";
import {
  encodeCompletion,
  encodeData,
  encodeInitialised,
  encodeReadyToTransfer,
  encodeTermination,
  type HostPdu,
  HostStream,
  inCapsuleBytes,
  ProtocolError,
  transferBytes,
} from "./pdu.ts";

const content = Uint8Array.of(1, 2, 3, 4);

function pdu(type: number, header: number, offset: number, length: number, flags = 0): Uint8Array {
  const bytes = new Uint8Array(length);
  bytes.set([type, flags, header, offset]);
  viewOf(bytes).setUint32(4, length, true);
  return bytes;
}

function dataPdu(offset: number): Uint8Array {
  const bytes = pdu(6, 24, 24, 28, 4);
  const view = viewOf(bytes);
  view.setUint16(8, 7, true);
  view.setUint16(10, 3, true);
  view.setUint32(12, offset, true);
  view.setUint32(16, 4, true);
  bytes.set(content, 24);
  return bytes;
}

function capsule(): Uint8Array {
  const bytes = pdu(4, 72, 72, 76);
  bytes.fill(9, 8, 72);
  bytes.set(content, 72);
  return bytes;
}

function changed(bytes: Uint8Array, at: number, ...values: readonly number[]): Uint8Array {
  const copy = bytes.slice();
  copy.set(values, at);
  return copy;
}

function read(...chunks: readonly Uint8Array[]): HostPdu[] {
  const stream = new HostStream();
  return chunks.flatMap((chunk) => [...stream.push(chunk)]);
}

Deno.test("HostStream reads what a host sends", () => {
  assert.deepEqual(read(changed(pdu(0, 128, 0, 128), 10, 1)), [
    { kind: "initialise", version: 0, alignmentBytes: 8 },
  ]);
  assert.deepEqual(read(capsule(), pdu(4, 72, 0, 72)), [
    { kind: "command", entry: new Uint8Array(64).fill(9), data: content },
    { kind: "command", entry: new Uint8Array(64), data: new Uint8Array(0) },
  ]);
  assert.deepEqual(read(dataPdu(512)), [
    { kind: "data", commandId: 7, tag: 3, offset: 512, bytes: content, last: true },
  ]);
  assert.deepEqual(read(pdu(2, 24, 0, 152)), [{ kind: "terminated" }]);
});

Deno.test("HostStream gives the same however the stream is cut", () => {
  const whole = Uint8Array.from([...pdu(0, 128, 0, 128), ...capsule(), ...dataPdu(0)]);
  const pieces = Array.from({ length: whole.length }, (_, at) => whole.subarray(at, at + 1));
  assert.deepEqual(read(...pieces), read(whole));
  assert.equal(read(whole).length, 3);
});

const broken: readonly (readonly [name: string, bytes: Uint8Array])[] = [
  ["a type that targets send", pdu(5, 24, 0, 24)],
  ["a type that there is not", pdu(0xee, 24, 0, 24)],
  ["an SSH client", new TextEncoder().encode("SSH-2.0-Go\r\n")],
  ["a header of another length", changed(capsule(), 2, 64)],
  ["a header digest", changed(capsule(), 1, 1)],
  ["a data digest", changed(capsule(), 1, 2)],
  ["a length of nothing", changed(capsule(), 4, 0)],
  ["a giant command", changed(capsule(), 4, 0xff, 0xff, 0xff, 0x7f).subarray(0, 8)],
  ["more in a command than it may bring", pdu(4, 72, 72, 72 + 128 + inCapsuleBytes + 1).subarray(0, 8)],
  ["more in a PDU than it may hold", pdu(6, 24, 24, 24 + 128 + transferBytes + 1).subarray(0, 8)],
  ["a first PDU that is too long", pdu(0, 128, 0, 129)],
  ["an impossible alignment", changed(pdu(0, 128, 0, 128), 10, 32)],
  ["data inside the header", changed(capsule(), 3, 71)],
  ["data beyond the end", changed(capsule(), 3, 77)],
  ["less data than it says", changed(dataPdu(0), 16, 5)],
  ["more data than it says", changed(dataPdu(0), 16, 3)],
];

for (const [name, bytes] of broken) {
  Deno.test(`HostStream throws ProtocolError for ${name}`, () => {
    assert.throws(() => read(bytes), ProtocolError);
  });
}

Deno.test("HostStream throws nothing but ProtocolError, whatever bytes it gets", () => {
  const random = new SeededRandom(8);
  const models = [pdu(0, 128, 0, 128), capsule(), dataPdu(0), pdu(2, 24, 0, 24)];
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const bytes = models[round % models.length]!.slice();
    for (let i = 0; i < 3; i++) {
      bytes[Math.floor(random.fraction() * Math.min(24, bytes.length))] = random.bytes(1)[0]!;
    }
    try {
      read(bytes);
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
      refused++;
    }
  }
  assert.ok(refused > 5_000 && refused < 20_000, `${refused}`);
});

Deno.test("what a target sends is laid out as the specification says", () => {
  const start = (bytes: Uint8Array, to: number) => [...bytes.subarray(0, to)];
  assert.deepEqual(
    [encodeInitialised().length, start(encodeInitialised(), 16)],
    [128, [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]],
  );
  const completion = { commandId: 0x0102, status: 0x184, result: 5n, queueId: 1, queueHead: 9 };
  assert.deepEqual(start(encodeCompletion(completion), 24), [
    ...[5, 0, 24, 0, 24, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
    ...[9, 0, 1, 0, 2, 1, 0x08, 0x83],
  ]);
  assert.deepEqual(start(encodeCompletion({ ...completion, status: 0 }), 24).slice(22), [0, 0]);
  assert.deepEqual(start(encodeReadyToTransfer(7, 3, 512), 24), [
    ...[9, 0, 24, 0, 24, 0, 0, 0, 7, 0, 3, 0, 0, 0, 0, 0],
    ...[0, 2, 0, 0, 0, 0, 0, 0],
  ]);
  assert.deepEqual(start(encodeTermination(2), 10), [3, 0, 24, 0, 24, 0, 0, 0, 2, 0]);
});

Deno.test("encodeData() begins where the host wants it, and says whether the command has succeeded", () => {
  const plain = encodeData(7, content, 4, false);
  assert.deepEqual([plain.length, plain[1], plain[3], [...plain.subarray(24)]], [28, 4, 24, [1, 2, 3, 4]]);
  const aligned = encodeData(7, content, 32, true);
  assert.deepEqual([aligned.length, aligned[1], aligned[3], [...aligned.subarray(32)]], [
    ...[36, 12, 32],
    [1, 2, 3, 4],
  ]);
});
