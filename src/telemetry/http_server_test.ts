import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { type HttpHandler, httpLimits, HttpServer } from "./http_server.ts";

const local = { hostname: "127.0.0.1", port: 0 };
const encoder = new TextEncoder();

/** A server with a clock of its own, for a test and its clients. */
class Bench implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly server: HttpServer;
  readonly #clients: Deno.TcpConn[] = [];
  readonly #sockets: Socket[] = [];

  constructor(handler: HttpHandler = () => Promise.resolve(new Response("answer\n"))) {
    this.server = new HttpServer(local, handler, this.clock);
  }

  get #port(): number {
    return Number(new URL(this.server.url).port);
  }

  /** A client that sends this at once. */
  async client(text = ""): Promise<Deno.TcpConn> {
    const client = await Deno.connect({ ...local, port: this.#port });
    this.#clients.push(client);
    if (text !== "") await client.write(encoder.encode(text));
    return client;
  }

  /** A client at another address of this machine; resolves when it is connected. */
  async clientAt(localAddress: string): Promise<{ readonly closed: Promise<void> }> {
    const socket = connect({ host: local.hostname, port: this.#port, localAddress });
    this.#sockets.push(socket);
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.on("error", () => {});
    socket.resume();
    await new Promise<void>((resolve) => socket.on("connect", () => resolve()));
    return { closed };
  }

  /** Lets time pass in small steps until this is so. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await this.clock.advance(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    for (const socket of this.#sockets) socket.destroy();
    await this.server.stop();
  }
}

/** All that a client is sent until the server closes its connection. */
async function readAll(client: Deno.TcpConn): Promise<string> {
  const bytes = new Uint8Array(1 << 16);
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let count; (count = await client.read(bytes)) !== null;) {
      text += decoder.decode(bytes.subarray(0, count));
    }
  } catch (error) {
    assert.ok(error instanceof Deno.errors.ConnectionReset, String(error));
  }
  return text;
}

const whole = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

Deno.test("a connection whose head does not end is closed after its time", async () => {
  await using bench = new Bench();
  const client = await bench.client("GET /metrics HTTP/1.1\r\nx:");
  const end = readAll(client);
  // Once it is served, its time limit runs.
  await bench.until(() => bench.clock.waiting > 0);
  await bench.clock.advance(httpLimits.headMs);
  assert.equal(await end, "");
});

Deno.test("a head that is too long is refused, whether it comes at once or byte by byte", async () => {
  await using bench = new Bench();
  const atOnce = await bench.client(`GET / HTTP/1.1\r\nx: ${"y".repeat(httpLimits.headBytes)}\r\n\r\n`);
  assert.match(await readAll(atOnce), /^HTTP\/1\.1 431 /);
  const slow = await bench.client("GET / HTTP/1.1\r\nx: ");
  for (let sent = 0; sent <= httpLimits.headBytes; sent += 512) await slow.write(new Uint8Array(512));
  assert.match(await readAll(slow), /^HTTP\/1\.1 431 /);
});

Deno.test("a head may come in parts, and the line end in two", async () => {
  await using bench = new Bench();
  const client = await bench.client("GET / HT");
  for (const part of ["TP/1.1\r\nhost: a\r", "\n\r", "\n"]) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await client.write(encoder.encode(part));
  }
  assert.match(await readAll(client), /^HTTP\/1\.1 200 [^]*\r\n\r\nanswer\n$/);
});

Deno.test("a connection serves one request, and HEAD has no body", async () => {
  await using bench = new Bench();
  const twice = await readAll(await bench.client(whole + whole));
  assert.equal(twice.match(/HTTP\/1\.1 200 /g)?.length, 1);
  assert.match(twice, /\r\nconnection: close\r\n/);
  assert.match(twice, /\r\ncontent-length: 7\r\n[^]*\r\n\r\nanswer\n$/);
  const head = await readAll(await bench.client(whole.replace("GET", "HEAD")));
  assert.match(head, /\r\ncontent-length: 7\r\n[^]*\r\n\r\n$/);
});

Deno.test("HTTP/2, other methods and a failed answer are refused", async () => {
  await using bench = new Bench(() => Promise.reject(new Error("no list")));
  const answerTo = async (text: string) => (await readAll(await bench.client(text))).split("\r\n", 1)[0];
  assert.equal(await answerTo("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1 505 ");
  assert.equal(await answerTo(whole.replace("GET", "POST")), "HTTP/1.1 405 ");
  assert.equal(await answerTo(whole), "HTTP/1.1 500 ");
});

Deno.test("the newest connection of an address takes the place of its oldest", async () => {
  await using bench = new Bench();
  const waiting: Deno.TcpConn[] = [];
  for (let i = 0; i < httpLimits.connectionsOfAddress; i++) waiting.push(await bench.client("GET"));
  const ends = waiting.map((client) => readAll(client));
  assert.match(await readAll(await bench.client(whole)), /^HTTP\/1\.1 200 /);
  assert.equal(await ends[0]!, "");
  for (const client of waiting.slice(1)) await client.write(encoder.encode(" / HTTP/1.1\r\n\r\n"));
  for (const end of ends.slice(1)) assert.match(await end, /^HTTP\/1\.1 200 /);
});

Deno.test("an address with one connection keeps it while others take all that they can get", async () => {
  await using bench = new Bench();
  const only = await bench.client("GET");
  let closed = 0;
  for (let i = 0; i < 2 * httpLimits.connections; i++) {
    const other = await bench.clientAt(`127.0.1.${1 + i % 8}`);
    void other.closed.then(() => closed++);
  }
  await bench.until(() => closed > httpLimits.connections);
  await only.write(encoder.encode(" / HTTP/1.1\r\n\r\n"));
  assert.match(await readAll(only), /^HTTP\/1\.1 200 /);
});

Deno.test("a client that does not read its answer is cut off after its time", async () => {
  const body = new Uint8Array(64 * 2 ** 20);
  await using bench = new Bench(() => Promise.resolve(new Response(body)));
  const client = await bench.client(whole);
  await bench.until(() => bench.clock.waiting > 0);
  const first = new Uint8Array(1);
  await client.read(first);
  await bench.clock.advance(httpLimits.answerMs);
  const rest = await readAll(client);
  assert.ok(rest.length < body.length, `${rest.length} bytes`);
});

Deno.test("a handler learns that its client was dropped", async () => {
  const dropped = Promise.withResolvers<void>();
  await using bench = new Bench((_request, { signal }) => {
    signal.addEventListener("abort", () => dropped.resolve());
    return new Promise(() => {});
  });
  for (let i = 0; i <= httpLimits.connectionsOfAddress; i++) await bench.client(whole);
  await dropped.promise;
});

Deno.test("a server that is stopped can be stopped again", async () => {
  await using bench = new Bench();
  await bench.server.stop();
  await bench.server.stop();
});
