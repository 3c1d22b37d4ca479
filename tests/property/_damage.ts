// Data that no client should send: damaged messages, and bytes that are not HTTP/2.
import { Buffer } from "node:buffer";
import { type Client, status } from "@grpc/grpc-js";
import type { SeededRandom } from "../fakes/random.ts";

const preface = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const settings = Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0);

/** How long an answer may take, in milliseconds. */
export const answerMs = 20_000;
/** The codes that CSI defines. */
export const properCodes: readonly string[] = [
  "OK",
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

/** Cuts, lengthens or changes a message at one byte. */
export function damaged(bytes: Buffer, at: number, by: number): Buffer {
  if (bytes.length === 0) return Buffer.from([by]);
  const index = at % bytes.length;
  if (by % 3 === 0) return bytes.subarray(0, index);
  const changed = Buffer.from([by]);
  return Buffer.concat([bytes.subarray(0, index), changed, bytes.subarray(by % 3 === 1 ? index : index + 1)]);
}

/** Sends a message as it is; returns the code of the answer. @param limitMs milliseconds until it gives up */
export function answerTo(client: Client, path: string, message: Buffer, limitMs: number): Promise<string> {
  const asIs = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const deadline = Date.now() + limitMs;
    client.makeUnaryRequest(path, asIs, asIs, message, { deadline }, (error) => {
      // Every gRPC server answers an undecodable request with this code.
      const isUndecodable = error?.code === status.INTERNAL &&
        /^Error deserializing request/.test(error.details);
      resolve(error === null ? "OK" : isUndecodable ? "INVALID_ARGUMENT" : status[error.code]);
    });
  });
}

/** Random bytes, a damaged HTTP/2 preface, or frames of random kinds, flags, streams and lengths. */
export function nonsense(random: SeededRandom): Uint8Array {
  const below = (limit: number) => Math.floor(random.fraction() * limit);
  const kind = below(4);
  if (kind === 0) return random.bytes(below(2_000));
  if (kind === 1) {
    const damaged = Uint8Array.from([...preface, ...settings]);
    damaged[below(damaged.length)] = below(256);
    return damaged;
  }
  const frames: number[] = [...preface, ...settings];
  for (let frame = below(20); frame >= 0; frame--) {
    const body = random.bytes(below(200));
    // Some frames have a wrong length.
    const said = kind === 2 ? body.length : below(2 ** 24);
    frames.push(said >> 16 & 255, said >> 8 & 255, said & 255, below(16), below(256));
    frames.push(0, 0, 0, below(8), ...body);
  }
  return Uint8Array.from(frames);
}

/** Sends bytes, and waits until the other side has closed, or for some milliseconds. */
export async function send(connection: Deno.Conn, bytes: Uint8Array, waitMs: number): Promise<void> {
  try {
    await connection.write(bytes);
    await connection.closeWrite();
    const buffer = new Uint8Array(16_384);
    const endMs = Date.now() + waitMs;
    while (Date.now() < endMs && await connection.read(buffer) !== null);
  } catch (error) {
    // The driver may break the connection of such a client.
    if (!(error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe)) {
      throw error;
    }
  }
}
