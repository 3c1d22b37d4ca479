import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  addCommand,
  anyone,
  makeBasePath,
  makeRouter,
  typeTo,
} from "../../../tests/support/simulated_router.ts";
import { Timing } from "../timing.ts";
import { Console, Interrupted } from "./console.ts";

function timed(scale: number, behaviours = {}) {
  const clock = new FakeClock();
  const router = makeRouter({ clock, behaviours });
  return { clock, router, console: new Console(router, new Timing(scale, new SeededRandom())) };
}

Deno.test("a command takes the time of its parts before it answers", async () => {
  const { clock, console } = timed(1);
  let done = false;
  const running = console.execute("/disk print count-only", anyone).then(() => done = true);
  await clock.advance(49);
  assert.equal(done, false);
  await clock.advance(51);
  assert.equal(done, true);
  await running;
});

Deno.test("a refused command takes its time as well", async () => {
  const { clock, console } = timed(1);
  const running = console.execute('/disk print count-only; /disk remove "x"', anyone);
  await clock.advance(100);
  assert.equal((await running).refusal, "no such item");
});

Deno.test("with the behaviour interleave an item that was found may be gone when its verb runs", async () => {
  const { clock, router, console } = timed(1, { interleave: true });
  const prepared = typeTo(router)(`${makeBasePath}; ${addCommand("a")}`);
  await clock.advance(5000);
  await prepared;
  const remove = '/disk remove [find where slot="a"]';
  const both = [console.execute(remove, anyone), console.execute(remove, anyone)];
  await clock.advance(5000);
  const refusals = (await Promise.all(both)).flatMap(({ refusal }) => refusal ?? []);
  assert.deepEqual(refusals, ["no such item (4)"]);
});

Deno.test("a command during a reboot stops where it is", async () => {
  const { clock, router, console } = timed(1, { interleave: true });
  const running = console.execute('/disk print count-only; /disk disable "nvme1"', anyone);
  const ended = assert.rejects(running, Interrupted);
  await clock.advance(1);
  router.boots++;
  await clock.advance(5000);
  await ended;
  assert.equal(router.disks.findBySlot("nvme1")?.disabled, false);
});

Deno.test("only lines that were parsed count their statements", async () => {
  const { console } = timed(0);
  const counts: number[] = [];
  for (const text of [':put "a"; :put "b";', "foo", ':put "a"\nfoo; bar', ":if (1=1) do={:put 1; :put 2}"]) {
    let count = 0;
    await console.execute(text, { ...anyone, understood: (statements) => void (count += statements.length) });
    counts.push(count);
  }
  assert.deepEqual(counts, [2, 0, 1, 1]);
});
