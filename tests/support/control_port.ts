import assert from "node:assert/strict";
import type { Simulator } from "../../src/simulator/simulator.ts";

/** Asks or changes a simulated router by a request to its control port, such as `PATCH /disks/a`; returns the answer. */
export async function control<Answer = unknown>(
  { controlUrl }: Pick<Simulator, "controlUrl">,
  request: string,
  body?: unknown,
): Promise<Answer> {
  const [method = "", path = ""] = request.split(" ");
  const response = await fetch(controlUrl + path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${request}: ${text}`);
  return JSON.parse(text);
}
