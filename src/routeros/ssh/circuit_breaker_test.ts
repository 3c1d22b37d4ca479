import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { backoffMs, CircuitBreaker } from "./circuit_breaker.ts";
import type { BreakerEvent } from "./observer.ts";

function bench(openAfter = 3) {
  const clock = new FakeClock();
  const events: BreakerEvent[] = [];
  const backoff = { firstMs: 100, maxMs: 1000 };
  const changed = (event: BreakerEvent) => void events.push(event);
  const breaker = new CircuitBreaker({ clock, random: new SeededRandom(), backoff, openAfter, changed });
  return { clock, events, breaker };
}

Deno.test("CircuitBreaker opens with the third failure in a row and gives the time of the next attempt", () => {
  const { breaker, clock, events } = bench();
  breaker.failed("one", false);
  breaker.failed("two", false);
  assert.equal(breaker.state, "closed");
  assert.deepEqual(events, []);
  const delayMs = breaker.failed("three", false);
  assert.equal(breaker.state, "open");
  const nextTryAtMs = clock.now() + delayMs;
  assert.deepEqual(events, [{ state: "open", cause: "three", failures: 3, nextTryAtMs }]);
  const time = new Date(nextTryAtMs).toISOString();
  assert.equal(breaker.reason, `three; that failed 3 times in a row, and the next try is not before ${time}`);
});

Deno.test("CircuitBreaker counts from zero again after a success", () => {
  const { breaker, events } = bench();
  for (const cause of ["one", "two"]) breaker.failed(cause, false);
  breaker.succeeded();
  for (const cause of ["three", "four"]) breaker.failed(cause, false);
  assert.equal(breaker.state, "closed");
  assert.deepEqual(events, []);
});

Deno.test("CircuitBreaker opens at once with a failure that lasts", () => {
  const { breaker } = bench();
  breaker.failed("another host key", true);
  assert.equal(breaker.state, "open");
  assert.match(breaker.reason, /^another host key; that failed once, and the next try/);
});

Deno.test("CircuitBreaker opens again when an attempt fails, and closes when it succeeds", () => {
  const { breaker, events } = bench(1);
  breaker.tries();
  assert.equal(breaker.state, "closed");
  breaker.failed("one", false);
  breaker.tries();
  assert.match(breaker.reason, /^one; .* another try is under way$/);
  breaker.failed("two", false);
  breaker.tries();
  breaker.succeeded();
  assert.deepEqual(events.map(({ state, cause, failures }) => [state, cause, failures]), [
    ["open", "one", 1],
    ["trying", "one", 1],
    ["open", "two", 2],
    ["trying", "two", 2],
    ["closed", undefined, 0],
  ]);
});

const options = { firstMs: 100, maxMs: 1000 };

Deno.test("backoffMs() is 0 before the first failure", () => {
  assert.equal(backoffMs(0, new SeededRandom(), options), 0);
});

Deno.test("backoffMs() doubles up to the maximum, and chooses randomly from the upper half", () => {
  const random = new SeededRandom(7);
  for (const [failures, full] of [[1, 100], [2, 200], [3, 400], [4, 800], [5, 1000], [5000, 1000]] as const) {
    for (let i = 0; i < 50; i++) {
      const ms = backoffMs(failures, random, options);
      assert.ok(ms >= full / 2 && ms <= full, `${failures} failures: ${ms}`);
    }
  }
});

Deno.test("backoffMs() differs between clients", () => {
  const delays = Array.from({ length: 20 }, (_, seed) => backoffMs(5, new SeededRandom(seed), options));
  assert.ok(new Set(delays).size > 10);
});
