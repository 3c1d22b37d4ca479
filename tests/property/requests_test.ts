// Requests that no client should send: each gets a valid CSI code in time, and changes only its own objects.
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { Client, credentials } from "@grpc/grpc-js";
import fc from "fast-check";
import { codeOf, type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { isLong } from "../support/long.ts";
import { create } from "../support/controller_calls.ts";
import { probeOnly, TestBench } from "../support/csi_server.ts";
import { startStack } from "../support/stack.ts";
import { answerTo, damaged } from "./_damage.ts";
import { requestsOf } from "./_messages.ts";
import { startNode } from "./_services.ts";

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
  "UNAUTHENTICATED",
];

/** A driver that serves over a socket, with the requests of one of its services. */
interface Subject {
  /** Where it serves, such as `127.0.0.1:1234`. */
  readonly address: string;
  readonly clients: CsiClients;
  readonly requests: ReadonlyMap<string, fc.Arbitrary<object>>;
}

/** Starts the driver of each service; everything ends with `parts`. */
const subjects: Readonly<
  Record<"Controller" | "Identity" | "Node", (parts: AsyncDisposableStack) => Promise<Subject>>
> = {
  Controller: (parts) => startController("Controller", parts),
  Identity: (parts) => startController("Identity", parts),
  Node: async (parts) => {
    const { methods, clock, known, valid } = await startNode();
    const bench = parts.use(await TestBench.make());
    const services = { node: methods, ...probeOnly() };
    const server = await bench.start({ endpoint: "tcp://127.0.0.1:0", services });
    // What the node waits for in the time of its own clock is there at once.
    const timer = setInterval(() => void clock.advance(1_000), 1);
    parts.defer(() => clearInterval(timer));
    const clients = dial(loadCsi(), server.address, systemClock);
    parts.defer(() => clients.close());
    const requests = requestsOf("csi.v1.Node", known, valid);
    return { address: server.address.replace(/^tcp:\/\//, ""), clients, requests };
  },
};

async function startController(
  service: "Controller" | "Identity",
  parts: AsyncDisposableStack,
): Promise<Subject> {
  const stack = parts.use(await startStack());
  const own = await create(stack, "pvc-own");
  const requests = requestsOf(`csi.v1.${service}`, [own, "pvc-own", "node-1", "ext4", "default"]);
  return { address: stack.driver.address.replace(/^tcp:\/\//, ""), clients: stack.clients, requests };
}

for (const service of ["Controller", "Identity", "Node"] as const) {
  Deno.test(`a request of random fields gets a proper answer: ${service}`, async (test) => {
    await using parts = new AsyncDisposableStack();
    const { clients, requests } = await subjects[service](parts);
    const client = clients[service.toLowerCase() as "controller"];
    for (const [name, request] of requests) {
      await test.step(name, async () => {
        const seed = Math.floor(Math.random() * 2 ** 31);
        for (const message of fc.sample(request, { numRuns: runs, seed })) {
          const answer = client.call(name as "CreateVolume", message, answerMs);
          const code = await answer.then(() => "OK", (error) => codeOf(error) ?? String(error));
          const shown = JSON.stringify(
            message,
            (_, value) => typeof value === "bigint" ? String(value) : value,
          );
          assert.ok(code === "OK" || codes.includes(code), `${code} for ${name}(${shown}), seed ${seed}`);
        }
      });
    }
    const { ready } = await clients.identity.call("Probe", {});
    assert.ok(ready?.value, "it still serves");
  });
}

for (const service of ["Controller", "Node"] as const) {
  Deno.test(`a request whose bytes are damaged gets a proper answer: ${service}`, async (test) => {
    await using parts = new AsyncDisposableStack();
    const { address, requests } = await subjects[service](parts);
    const client = new Client(address, credentials.createInsecure());
    parts.defer(() => client.close());
    const methods = loadCsi()[service].service;
    for (const [name, request] of requests) {
      await test.step(name, async () => {
        const { path, requestSerialize } = methods[name as keyof typeof methods];
        const whole = request.map((message) => (requestSerialize as (message: object) => Buffer)(message));
        const seed = Math.floor(Math.random() * 2 ** 31);
        for (
          const [bytes, at, by] of fc.sample(fc.tuple(whole, fc.nat(), fc.nat(255)), { numRuns: runs, seed })
        ) {
          const code = await answerTo(client, path, damaged(bytes, at, by), answerMs);
          assert.ok(code === "OK" || codes.includes(code), `${code} for ${name}, seed ${seed}`);
        }
      });
    }
  });
}
