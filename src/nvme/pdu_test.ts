import assert from "node:assert/strict";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { VolumeError } from "../volume/errors.ts";
import {
  assertUnreadable,
  changed,
  data,
  initResponse,
  lastData,
  response,
  successData,
  termination,
} from "../../tests/support/nvme_host.ts";
import { encodeCommand, encodeInitRequest, parseTargetPdu, PduSplitter } from "./pdu.ts";

const content = Uint8Array.of(1, 2, 3, 4);

Deno.test("parseTargetPdu() reads every PDU of a target", () => {
  assert.deepEqual(parseTargetPdu(initResponse({ alignment: 3 })), {
    kind: "initialised",
    version: 0,
    alignmentBytes: 16,
    digests: false,
  });
  assert.deepEqual(parseTargetPdu(response(7, { type: 1, code: 0x84, result: 5n })), {
    kind: "response",
    commandId: 7,
    status: { type: 1, code: 0x84, doNotRetry: false },
    result: 5n,
  });
  assert.deepEqual(parseTargetPdu(data(9, 512, content, lastData | successData)), {
    kind: "data",
    commandId: 9,
    offset: 512,
    bytes: content,
    last: true,
    success: true,
  });
  assert.deepEqual(parseTargetPdu(termination(2)), { kind: "terminated", reason: "PDU sequence error" });
});

Deno.test("parseTargetPdu() reads a status that says not to retry", () => {
  const pdu = parseTargetPdu(changed(response(1, { code: 0x02 }), 23, 0x80));
  assert.deepEqual(pdu.kind === "response" && pdu.status, { type: 0, code: 0x02, doNotRetry: true });
});

Deno.test("parseTargetPdu() reads data after a gap", () => {
  const padded = new Uint8Array(36);
  padded.set(data(1, 0, content).subarray(0, 24));
  padded.set([32], 3);
  padded.set([36, 0, 0, 0], 4);
  padded.set(content, 32);
  const pdu = parseTargetPdu(padded);
  assert.deepEqual(pdu.kind === "data" && pdu.bytes, content);
});

const broken: readonly (readonly [name: string, pdu: Uint8Array, reason: RegExp])[] = [
  ["nothing", new Uint8Array(0), /not whole/],
  ["half a header", response(1).subarray(0, 7), /not whole/],
  ["a PDU without its end", response(1).subarray(0, 23), /not whole/],
  ["a PDU with something behind it", Uint8Array.of(...response(1), 0), /not whole/],
  ["a type that hosts send", changed(response(1), 0, 0x04), /no target sends.*pdu-type=4/],
  ["a type that there is not", changed(response(1), 0, 0xff), /no target sends/],
  ["a request for data that was not announced", changed(response(1), 0, 0x09), /no target sends/],
  ["a header of another length", changed(response(1), 2, 16), /header has the wrong length/],
  ["a header digest", changed(response(1), 1, 0x01), /digests/],
  ["a data digest", changed(data(1, 0, content), 1, 0x02), /digests/],
  ["a length of nothing", changed(response(1), 4, 0), /impossible length/],
  ["a response that is too long", changed(response(1), 4, 25), /impossible length/],
  ["a giant length", changed(data(1, 0, content), 4, 0xff, 0xff, 0xff, 0xff), /impossible length/],
  ["a length just over the limit", changed(data(1, 0, content), 4, 1, 0, 8, 0), /impossible length/],
  ["data inside the header", changed(data(1, 0, content), 3, 20), /does not lie/],
  ["data beyond the end", changed(data(1, 0, content), 3, 25), /does not lie/],
  ["more data than there is", changed(data(1, 0, content), 16, 5), /does not lie/],
  ["giant data", changed(data(1, 0, content), 16, 0xff, 0xff, 0xff, 0xff), /does not lie/],
  ["success without an end", data(1, 0, content, successData), /before its last data/],
  ["an impossible alignment", initResponse({ alignment: 32 }), /alignment/],
];

for (const [name, pdu, reason] of broken) {
  Deno.test(`parseTargetPdu() throws unavailable for ${name}`, () => {
    assertUnreadable(() => parseTargetPdu(pdu), reason);
  });
}

Deno.test("parseTargetPdu() throws only unavailable, for any bytes", () => {
  const random = new SeededRandom(4);
  const models = [initResponse(), response(1), data(1, 0, content), termination(1)];
  let refused = 0;
  for (let round = 0; round < 20_000; round++) {
    const pdu = models[round % models.length]!.slice();
    for (let i = 0; i < 3; i++) {
      pdu[Math.floor(random.fraction() * Math.min(32, pdu.length))] = random.bytes(1)[0]!;
    }
    try {
      parseTargetPdu(pdu.subarray(0, Math.floor(random.fraction() * 2 * pdu.length)));
    } catch (error) {
      assert.equal(VolumeError.is(error, "unavailable"), true, String(error));
      refused++;
    }
  }
  assert.ok(refused > 10_000 && refused < 20_000, `${refused}`);
});

Deno.test("PduSplitter returns the same PDUs however the stream is cut", () => {
  const pdus = [initResponse(), response(1), data(2, 0, new Uint8Array(5000).fill(7)), response(2)];
  const stream = Uint8Array.from(pdus.flatMap((pdu) => [...pdu]));
  const random = new SeededRandom(2);
  for (const most of [1, 3, 30, 1000, stream.length]) {
    const splitter = new PduSplitter();
    const got: Uint8Array[] = [];
    for (let at = 0; at < stream.length;) {
      const end = at + 1 + Math.floor(random.fraction() * most);
      got.push(...splitter.push(stream.subarray(at, end)));
      at = end;
    }
    assert.deepEqual(got.map((pdu) => [...pdu]), pdus.map((pdu) => [...pdu]));
  }
});

Deno.test("PduSplitter refuses a giant PDU before it has arrived, and returns the complete ones before it", () => {
  const splitter = new PduSplitter();
  const giant = changed(data(1, 0, content), 4, 0, 0, 0, 0x40).subarray(0, 8);
  const pdus = splitter.push(Uint8Array.of(...response(1), ...giant));
  assert.deepEqual(pdus.next().value, response(1));
  assertUnreadable(() => pdus.next(), /impossible length/);
});

Deno.test("encodeInitRequest() requests no digests", () => {
  const bytes = encodeInitRequest();
  assert.deepEqual([bytes.length, [...bytes.subarray(0, 16)]], [128, [
    ...[0, 0, 128, 0, 128, 0, 0, 0],
    ...[0, 0, 0, 0, 0, 0, 0, 0],
  ]]);
});

Deno.test("encodeCommand() aligns data as the target requires", () => {
  const entry = new Uint8Array(64).fill(5);
  const bare = encodeCommand(entry, new Uint8Array(0), 64);
  assert.deepEqual([bare.length, [...bare.subarray(0, 9)]], [72, [4, 0, 72, 0, 72, 0, 0, 0, 5]]);
  const close = encodeCommand(entry, content, 4);
  assert.deepEqual([close.length, close[3], [...close.subarray(72)]], [76, 72, [1, 2, 3, 4]]);
  const aligned = encodeCommand(entry, content, 64);
  assert.deepEqual([aligned.length, aligned[3], [...aligned.subarray(128)]], [132, 128, [1, 2, 3, 4]]);
});
