// Data that no HTTP/2 client sends: the driver continues to serve other clients.
import assert from "node:assert/strict";
import { isLong } from "../support/long.ts";
import { SeededRandom } from "../fakes/random.ts";
import { startStack } from "../support/stack.ts";

/** How many connections send data that is not HTTP/2. */
const connections = isLong ? 2_000 : 100;
const preface = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const settings = Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 0, 0);
/** How long a connection may take to be answered or closed, in milliseconds. */
const closedMs = 2_000;

Deno.test("the driver goes on serving others whatever bytes come over the socket", async () => {
  await using stack = await startStack();
  const { hostname, port } = new URL(stack.driver.address.replace(/^tcp:/, "http:"));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new SeededRandom(seed);
  for (let number = 0; number < connections; number++) {
    await send(hostname, Number(port), nonsense(random));
    if (number % 25 !== 0) continue;
    const { ready } = await stack.clients.identity.call("Probe", {});
    assert.ok(ready?.value, `seed ${seed}, connection ${number}`);
  }
  assert.deepEqual(stack.log.filter((line) => /"level":"fatal"|uncaught|unhandled/i.test(line)), []);
});

/** Random bytes, a damaged HTTP/2 preface, or frames of random kinds, flags, streams and lengths. */
function nonsense(random: SeededRandom): Uint8Array {
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
async function send(hostname: string, port: number, bytes: Uint8Array): Promise<void> {
  using connection = await Deno.connect({ hostname, port });
  try {
    await connection.write(bytes);
    await connection.closeWrite();
    const buffer = new Uint8Array(16_384);
    const endMs = Date.now() + closedMs;
    while (Date.now() < endMs && await connection.read(buffer) !== null);
  } catch (error) {
    // The driver may break the connection of such a client.
    if (!(error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe)) {
      throw error;
    }
  }
}
