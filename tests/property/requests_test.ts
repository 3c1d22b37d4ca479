// Requests that no client should send: each gets a valid CSI code in time, and changes only its own objects.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Client, credentials, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { codeOf } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { isLong } from "../support/long.ts";
import { create } from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";
import { requestsOf } from "./_messages.ts";

/** How many requests each method gets over the socket. */
const runs = isLong ? 1_000 : 30;
/** How long an answer may take, in milliseconds. */
const answerMs = 20_000;
/** The codes that CSI defines. */
const codes = [
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "OUT_OF_RANGE",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "UNIMPLEMENTED",
  "UNAVAILABLE",
];

for (const service of ["Controller", "Identity"] as const) {
  Deno.test(`a request of random fields gets a proper answer: ${service}`, async (test) => {
    await using stack = await startStack();
    const own = await create(stack, "pvc-own");
    const requests = requestsOf(`csi.v1.${service}`, [own, "pvc-own", "node-1", "ext4", "default"]);
    const { controller, identity } = stack.clients;
    const send = service === "Controller"
      ? (name: string, message: object) => controller.call(name as "CreateVolume", message, answerMs)
      : (name: string, message: object) => identity.call(name as "Probe", message, answerMs);
    for (const [name, request] of requests) {
      await test.step(name, async () => {
        const seed = Math.floor(Math.random() * 2 ** 31);
        for (const message of fc.sample(request, { numRuns: runs, seed })) {
          const code = await send(name, message).then(() => "OK", (error) => codeOf(error) ?? String(error));
          const shown = JSON.stringify(
            message,
            (_, value) => typeof value === "bigint" ? String(value) : value,
          );
          assert.ok(code === "OK" || codes.includes(code), `${code} for ${name}(${shown}), seed ${seed}`);
        }
      });
    }
    const { ready } = await stack.clients.identity.call("Probe", {});
    assert.ok(ready?.value, "it still serves");
  });
}

Deno.test("a request whose bytes are damaged gets a proper answer", async (test) => {
  await using stack = await startStack();
  const own = await create(stack, "pvc-own");
  const client = new Client(stack.driver.address.replace(/^tcp:\/\//, ""), credentials.createInsecure());
  try {
    const methods = loadCsi().Controller.service;
    for (const [name, request] of requestsOf("csi.v1.Controller", [own, "node-1"])) {
      await test.step(name, async () => {
        const { path, requestSerialize } = methods[name as keyof typeof methods];
        const whole = request.map((message) => requestSerialize(message as never));
        const seed = Math.floor(Math.random() * 2 ** 31);
        for (
          const [bytes, at, by] of fc.sample(fc.tuple(whole, fc.nat(), fc.nat(255)), { numRuns: runs, seed })
        ) {
          const code = await answerTo(client, path, damaged(bytes, at, by));
          assert.ok(code === "OK" || codes.includes(code), `${code} for ${name}, seed ${seed}`);
        }
      });
    }
  } finally {
    client.close();
  }
});

/** Cuts, lengthens or changes a message at one byte. */
function damaged(bytes: Buffer, at: number, by: number): Buffer {
  if (bytes.length === 0) return Buffer.from([by]);
  const index = at % bytes.length;
  if (by % 3 === 0) return bytes.subarray(0, index);
  const changed = Buffer.from([by]);
  return Buffer.concat([bytes.subarray(0, index), changed, bytes.subarray(by % 3 === 1 ? index : index + 1)]);
}

function answerTo(client: Client, path: string, message: Buffer): Promise<string> {
  const asIs = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const deadline = Date.now() + answerMs;
    client.makeUnaryRequest(path, asIs, asIs, message, { deadline }, (error) => {
      // Every gRPC server answers an undecodable request with this code.
      const isUndecodable = error?.code === status.INTERNAL &&
        /^Error deserializing request/.test(error.details);
      resolve(error === null ? "OK" : isUndecodable ? "INVALID_ARGUMENT" : status[error.code]);
    });
  });
}
