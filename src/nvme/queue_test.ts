import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { VolumeError } from "../volume/errors.ts";
import { identify, keepAlive } from "./commands.ts";
import {
  data,
  initResponse,
  lastData,
  response,
  settle,
  successData,
  termination,
  TestStream,
} from "../../tests/support/nvme_host.ts";
import { Queue, queueDepth } from "./queue.ts";
import { StatusError } from "./command_status.ts";

const page = Uint8Array.from({ length: 4096 }, (_, index) => index % 251);

async function withQueue(
  test: (queue: Queue, stream: TestStream, clock: FakeClock) => Promise<void>,
): Promise<void> {
  const [clock, stream] = [new FakeClock(), new TestStream()];
  stream.feed(initResponse());
  const queue = await Queue.open(stream, "port=1", fakeCall(clock));
  try {
    await test(queue, stream, clock);
  } finally {
    await queue[Symbol.asyncDispose]();
  }
  assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
}

Deno.test("a command is sent with an id, and its caller gets the answer", async () => {
  await withQueue(async (queue, stream, clock) => {
    const [first, second] = [
      queue.run(keepAlive(), fakeCall(clock)),
      queue.run(keepAlive(), fakeCall(clock)),
    ];
    await settle();
    assert.deepEqual(stream.written.map((pdu) => [pdu[0], pdu[10]]), [[0, 0], [4, 0], [4, 1]]);
    stream.feed(response(1, { result: 11n }), response(0, { result: 10n }));
    assert.deepEqual([(await first).result, (await second).result], [10n, 11n]);
  });
});

Deno.test("data is assembled from its parts", async () => {
  await withQueue(async (queue, stream, clock) => {
    const answer = queue.run(identify("namespace", 1), fakeCall(clock));
    stream.feed(
      data(0, 0, page.subarray(0, 1000)),
      data(0, 1000, page.subarray(1000), lastData),
      response(0),
    );
    assert.deepEqual((await answer).bytes, page);
  });
});

Deno.test("the last data may say that the command succeeded, and no response comes", async () => {
  await withQueue(async (queue, stream, clock) => {
    const answer = queue.run(identify("namespace", 1), fakeCall(clock));
    stream.feed(data(0, 0, page, lastData | successData));
    assert.deepEqual((await answer).bytes, page);
  });
});

Deno.test("a refusal reports the target's status, and the queue goes on", async () => {
  await withQueue(async (queue, stream, clock) => {
    const refused = queue.run(identify("namespace", 1), fakeCall(clock));
    stream.feed(response(0, { code: 0x0b }));
    await assert.rejects(
      refused,
      (error) =>
        VolumeError.is(error, "unavailable") && error.cause instanceof StatusError &&
        /Cannot identify the NVMe namespace because .*status="invalid namespace or format \(0\/0x0b\)" port=1/
          .test(error.message),
    );
    const next = queue.run(keepAlive(), fakeCall(clock));
    stream.feed(response(1));
    assert.equal((await next).result, 0n);
  });
});

const endings: readonly (readonly [
  name: string,
  items: readonly (Uint8Array | null | Error)[],
  reason: RegExp,
])[] = [
  ["closes the connection", [null], /the target closed the connection/],
  ["breaks the connection", [new Deno.errors.ConnectionReset("reset")], /broke \(reset\)/],
  ["says that it ends it", [termination(1)], /invalid header field/],
  ["answers what was not asked", [response(5)], /not asked.*cid=5/],
  ["sends data that was not asked for", [data(5, 0, page)], /not asked.*cid=5/],
  ["skips data", [data(0, 4, page.subarray(4))], /not asked for: offset=4/],
  [
    "sends more data than was asked for",
    [data(0, 0, page), data(0, 4096, page)],
    /not asked for: offset=4096/,
  ],
  ["sends no data", [response(0)], /without its data: bytes=0 wanted=4096/],
  ["sends too little data", [data(0, 0, page.subarray(1), lastData | successData)], /bytes=4095 wanted=4096/],
  ["initialises twice", [initResponse()], /wrong order/],
  ["sends garbage", [new Uint8Array(64).fill(0xee)], /no target sends/],
];

for (const [name, items, reason] of endings) {
  Deno.test(`everything fails when the target ${name}`, async () => {
    await withQueue(async (queue, stream, clock) => {
      const waiting = queue.run(identify("namespace", 1), fakeCall(clock));
      stream.feed(...items);
      const unavailable = (error: unknown) =>
        VolumeError.is(error, "unavailable") && reason.test(error.message);
      await assert.rejects(waiting, unavailable);
      assert.match(await queue.ended, reason);
      assert.equal(stream.closed, true);
      await assert.rejects(queue.run(keepAlive(), fakeCall(clock)), unavailable);
    });
  });
}

Deno.test("a call that ends first leaves its id taken, and its late answer does no harm", async () => {
  await withQueue(async (queue, stream, clock) => {
    const slow = assert.rejects(
      queue.run(identify("namespace", 1), fakeCall(clock, 100)),
      refusal("deadline"),
    );
    await clock.advance(100);
    await slow;
    const next = queue.run(keepAlive(), fakeCall(clock));
    stream.feed(data(0, 0, page), response(0), response(1, { result: 3n }));
    assert.equal((await next).result, 3n);
  });
});

Deno.test("a cancelled call ends at once", async () => {
  await withQueue(async (queue, _stream, clock) => {
    const call = fakeCall(clock);
    const answer = queue.run(keepAlive(), call);
    call.cancel();
    await assert.rejects(answer, refusal("cancelled", /./));
    await assert.rejects(queue.run(keepAlive(), call), refusal("cancelled", /./));
  });
});

Deno.test("no more commands are sent than the queue has entries", async () => {
  await withQueue(async (queue, stream, clock) => {
    const answers = Array.from({ length: queueDepth - 1 }, () => queue.run(keepAlive(), fakeCall(clock)));
    await assert.rejects(queue.run(keepAlive(), fakeCall(clock)), /too many commands/);
    stream.feed(...answers.map((_, id) => response(id)));
    assert.equal((await Promise.all(answers)).length, queueDepth - 1);
  });
});

Deno.test("ending a queue fails waiting commands, and sends nothing more", async () => {
  await withQueue(async (queue, stream, clock) => {
    const waiting = queue.run(keepAlive(), fakeCall(clock));
    queue.end("the other queue has ended");
    await assert.rejects(waiting, /because the other queue has ended/);
    assert.equal(await queue.ended, "the other queue has ended");
    assert.equal(stream.written.length, 1);
  });
});

const refusals: readonly (readonly [name: string, answer: Uint8Array | null, reason: RegExp])[] = [
  ["closes at once", null, /closed the connection/],
  ["speaks another version", initResponse({ version: 1 }), /another version: pfv=1/],
  ["insists on digests", initResponse({ digests: 1 }), /digests/],
  ["begins with something else", response(0), /wrong order/],
  ["is an SSH server", new TextEncoder().encode("SSH-2.0-ROSSSH\r\n"), /no target sends/],
];

for (const [name, answer, reason] of refusals) {
  Deno.test(`Queue.open() throws unavailable when the other side ${name}`, async () => {
    const [clock, stream] = [new FakeClock(), new TestStream()];
    stream.feed(answer);
    await assert.rejects(Queue.open(stream, "port=1", fakeCall(clock)), refusal("unavailable", reason));
    assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
  });
}

Deno.test("Queue.open() gives up and closes when the other side says nothing until the call's deadline", async () => {
  const [clock, stream] = [new FakeClock(), new TestStream()];
  const opened = assert.rejects(
    Queue.open(stream, "port=1", fakeCall(clock, 500)),
    refusal("deadline"),
  );
  await clock.advance(500);
  await opened;
  assert.deepEqual([stream.closed, clock.waiting], [true, 0]);
});
