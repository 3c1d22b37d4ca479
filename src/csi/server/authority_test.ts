import assert from "node:assert/strict";
import { connect, serverTest, TestBench } from "../../../tests/support/csi_server.ts";

/** Frame types and flags (RFC 9113, section 6). */
const DATA = 0x0,
  HEADERS = 0x1,
  RST_STREAM = 0x3,
  SETTINGS = 0x4,
  PING = 0x6,
  GOAWAY = 0x7,
  WINDOW_UPDATE = 0x8;
const END_STREAM = 0x1, END_HEADERS = 0x4;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Uint8Array;
}

/** A client that sends any headers, which no library does. */
class RawHttp2Client implements Disposable {
  readonly #connection: Deno.Conn;
  #buffer = new Uint8Array();

  constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  /** Calls a method with an empty request; resolves with the frame that carries the response, or that ends the call. */
  async call(headers: readonly (readonly [string, string])[]): Promise<Frame> {
    // In one piece, because a server that refuses the headers closes the connection before it reads more.
    await this.#write(
      Uint8Array.from([
        ...new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ...encode({ type: SETTINGS, flags: 0, streamId: 0, payload: new Uint8Array() }),
        ...encode({ type: HEADERS, flags: END_HEADERS, streamId: 1, payload: headerBlock(headers) }),
        ...encode({ type: DATA, flags: END_STREAM, streamId: 1, payload: new Uint8Array(5) }),
      ]),
    );
    for (;;) {
      const frame = await this.#receive();
      const ends = (frame.flags & END_STREAM) !== 0 && frame.streamId === 1;
      if (ends || ![HEADERS, SETTINGS, PING, WINDOW_UPDATE].includes(frame.type)) return frame;
    }
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  async #receive(): Promise<Frame> {
    const head = await this.#take(9);
    const view = new DataView(head.buffer, head.byteOffset);
    const word = view.getUint32(0);
    const payload = await this.#take(word >>> 8);
    return { type: word & 0xff, flags: view.getUint8(4), streamId: view.getUint32(5), payload };
  }

  async #take(count: number): Promise<Uint8Array> {
    while (this.#buffer.length < count) {
      const chunk = new Uint8Array(16 * 1024);
      const read = await this.#connection.read(chunk);
      assert.ok(read !== null, "the server closed the connection");
      this.#buffer = new Uint8Array([...this.#buffer, ...chunk.subarray(0, read)]);
    }
    const taken = this.#buffer.slice(0, count);
    this.#buffer = this.#buffer.slice(count);
    return taken;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      written += await this.#connection.write(bytes.subarray(written));
    }
  }
}

function encode({ type, flags, streamId, payload }: Frame): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, payload.length << 8 | type);
  view.setUint8(4, flags);
  view.setUint32(5, streamId);
  bytes.set(payload, 9);
  return bytes;
}

/** Literal fields without indexing and without Huffman coding (RFC 7541, section 6.2.2). */
function headerBlock(headers: readonly (readonly [string, string])[]): Uint8Array {
  const bytes: number[] = [];
  for (const header of headers) {
    bytes.push(0);
    for (const text of header) {
      const encoded = new TextEncoder().encode(text);
      assert.ok(encoded.length < 127);
      bytes.push(encoded.length, ...encoded);
    }
  }
  return Uint8Array.from(bytes);
}

const WAYS = [["", Deno.version.deno], [" of an old Deno", "2.7.11"]] as const;

async function probe(address: string, authority: string | undefined): Promise<Frame> {
  using client = new RawHttp2Client(await connect(address));
  return await client.call([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/csi.v1.Identity/Probe"],
    ...(authority === undefined ? [] : [[":authority", authority] as const]),
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ]);
}

/** What current clients send: grpc-go for the unix scheme, and for a path given as a name. */
const ACCEPTED: readonly [string, string][] = [
  ["localhost", "localhost"],
  ["the socket's path, percent-encoded", "%2Fvar%2Flib%2Fkubelet%2Fplugins%2Frds.csi.srvlab.io%2Fcsi.sock"],
];

/**
 * What node:http2 refuses below this driver's code: RFC 9113 forbids it (section 8.3.1). Kubelets before 1.29 send
 * the socket's path unchanged where a driver registers itself; this keeps only them out.
 */
const REFUSED: readonly [string, string | undefined][] = [
  ["the socket's path", "/var/lib/kubelet/plugins/rds.csi.srvlab.io/csi.sock"],
  ["empty", ""],
  ["missing", undefined],
];

for (const [way, denoVersion] of WAYS) {
  for (const [what, authority] of ACCEPTED) {
    serverTest(
      `startServer() on a unix socket${way} answers a client whose :authority is ${what}`,
      async () => {
        await using bench = await TestBench.make();
        const server = await bench.start({ denoVersion });
        const frame = await probe(server.address, authority);
        assert.equal(frame.type, DATA, `frame of type ${frame.type}: ${frame.payload.toHex()}`);
        // Uncompressed, 4 bytes: field 1 (ready) = { field 1 (value) = true }.
        assert.equal(frame.payload.toHex(), "0000000004" + "0a020801");
      },
    );
  }

  for (const [what, authority] of REFUSED) {
    serverTest(
      `startServer() on a unix socket${way} serves others when an :authority is ${what}`,
      async () => {
        await using bench = await TestBench.make();
        const server = await bench.start({ denoVersion });
        const clients = bench.clients(server);
        assert.equal((await clients.call("Identity/Probe")).code, "OK");
        const frame = await probe(server.address, authority);
        assert.ok(frame.type === GOAWAY || frame.type === RST_STREAM, `frame of type ${frame.type}`);
        assert.equal((await clients.call("Identity/Probe")).code, "OK");
        assert.equal((await probe(server.address, "localhost")).type, DATA);
      },
    );
  }
}
