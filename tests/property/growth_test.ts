// Hostile clients for long: the driver, a process of its own, answers each damaged request by a valid CSI code, and keeps
// neither memory nor sockets of theirs.
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { Client, credentials } from "@grpc/grpc-js";
import fc from "fast-check";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { judgeSeries } from "../bench/growth.ts";
import { SeededRandom } from "../fakes/random.ts";
import { isLong } from "../support/long.ts";
import { type Part, startPart } from "../support/parts.ts";
import { reach, routerPassword, startRouter } from "../support/stack.ts";
import { answerMs, answerTo, damaged, nonsense, properCodes, send } from "./_damage.ts";
import { requestsOf } from "./_messages.ts";

/** How often the process is measured, and how many rounds before that fill its caches and compile its code. */
const rounds = isLong ? 60 : 15;
const warmUpRounds = 10;
/** Connections and calls of a round, and how many of them go on at the same time. */
const connections = 120;
const calls = 240;
const parallel = 12;

/**
 * How much memory may grow between the first third and the last, in MB. Until 45,000 calls the heap finds its size: it
 * rises by some 25 MB in all, and then stays there. The thirds are 2,400 connections and 2,400 calls apart, in the long
 * run 9,600 each: what an HTTP/2 session takes, some 30 KB, exceeds the limit if a connection leaves it
 * behind, be it cut or closed well.
 */
const growthMegabytes = isLong ? 25 : 20;
/** How many more files may be open: the SSH session is closed while idle, and a log or a file may be open for a moment. */
const moreFiles = 4;

Deno.test("every damaged request is answered, and memory and open sockets do not grow, however many clients send such", async () => {
  await using parts = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  parts.defer(() => Deno.remove(folder, { recursive: true }));
  const driver = await startDriver(folder, parts);
  const seed = Math.floor(Math.random() * 2 ** 31);
  const megabytes: number[] = [];
  const files: number[] = [];
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    await attack(`${folder}/csi.sock`, seed + round);
    if (round < warmUpRounds) continue;
    megabytes.push(await driver.residentBytes() / 1e6);
    files.push(await settledFiles(driver, Math.min(...files) + moreFiles));
  }
  for (
    const { flat, text } of [
      judgeSeries({ of: "resident memory, MB", values: megabytes, more: growthMegabytes }),
      judgeSeries({ of: "open files and sockets", values: files, more: moreFiles }),
    ]
  ) assert.ok(flat, `seed ${seed}: ${text}`);
});

/** Starts a controller as a process, on a simulated router in this one. */
async function startDriver(folder: string, parts: AsyncDisposableStack): Promise<Part> {
  const router = await startRouter();
  parts.defer(() => router.close());
  const socket = `${folder}/csi.sock`;
  await Deno.writeTextFile(`${folder}/password`, `${routerPassword}\n`, { mode: 0o600 });
  const flags = ["--endpoint", `unix://${socket}`, "--log-level", "error"];
  const driver = startPart("sources", "serve", folder, [...reach(router, `${folder}/password`), ...flags]);
  parts.defer(async () => assert.deepEqual(await driver.stop(), []));
  await driver.ready(() => Deno.lstat(socket).then(() => true, () => false));
  return driver;
}

/** One round: connections that send nonsense, every second one cut at once, and clients that send damaged messages. */
async function attack(socket: string, seed: number): Promise<void> {
  const random = new SeededRandom(seed);
  await inParallel(connections, async (number) => {
    using connection = await Deno.connect({ transport: "unix", path: socket });
    if (number % 2 === 0) await send(connection, nonsense(random), 0);
    else await connection.write(nonsense(random)).catch(() => "the driver was quicker");
  });
  // A connection of its own for each: clients share one otherwise.
  const options = { "grpc.use_local_subchannel_pool": 1 };
  const dial = () => new Client(`unix:${socket}`, credentials.createInsecure(), options);
  const messages = fc.sample(messagesOf(), { numRuns: calls, seed });
  const client = dial();
  try {
    await inParallel(calls, async (number) => {
      // The kubelet dials anew for each call.
      const own = number % 2 === 0 ? dial() : undefined;
      const code = await answerTo(own ?? client, ...messages[number]!, answerMs);
      assert.ok(properCodes.includes(code), `seed ${seed}: ${code} for ${messages[number]![0]}`);
      own?.close();
    });
  } finally {
    client.close();
  }
}

/** Damaged requests of every method of the controller, with their paths. */
function messagesOf(): fc.Arbitrary<[path: string, message: Buffer]> {
  const methods = loadCsi().Controller;
  const requests = [...requestsOf("csi.v1.Controller", ["pvc-own", "node-1"])].map(([name, request]) => {
    const { path, requestSerialize } = methods[name as keyof typeof methods];
    const bytes = request.map((message) => (requestSerialize as (message: object) => Buffer)(message));
    return fc.tuple(bytes, fc.nat(), fc.nat(255)).map(([whole, at, by]): [string, Buffer] => [
      path,
      damaged(whole, at, by),
    ]);
  });
  return fc.oneof(...requests);
}

async function inParallel(count: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

/** The number of open files once it is as expected, or after two seconds: the driver closes a connection after its client. */
async function settledFiles(driver: Part, expected: number): Promise<number> {
  for (let attempt = 0; attempt < 100 && driver.openFiles() > expected; attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return driver.openFiles();
}
