// Data that no HTTP/2 client sends: the driver continues to serve other clients.
import assert from "node:assert/strict";
import { isLong } from "../support/long.ts";
import { SeededRandom } from "../fakes/random.ts";
import { startStack } from "../support/stack.ts";
import { nonsense, send } from "./_damage.ts";

/** How many connections send data that is not HTTP/2. */
const connections = isLong ? 2_000 : 100;
/** How long a connection may take to be answered or closed, in milliseconds. */
const closedMs = 2_000;

Deno.test("the driver goes on serving others whatever bytes come over the socket", async () => {
  await using stack = await startStack();
  const { hostname, port } = new URL(stack.driver.address.replace(/^tcp:/, "http:"));
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = new SeededRandom(seed);
  for (let number = 0; number < connections; number++) {
    using connection = await Deno.connect({ hostname, port: Number(port) });
    await send(connection, nonsense(random), closedMs);
    if (number % 25 !== 0) continue;
    const { ready } = await stack.clients.identity.call("Probe", {});
    assert.ok(ready?.value, `seed ${seed}, connection ${number}`);
  }
  assert.deepEqual(stack.log.filter((line) => /"level":"fatal"|uncaught|unhandled/i.test(line)), []);
});
