import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCommandIo } from "../../tests/fakes/command_io.ts";
import { withProgress } from "./progress.ts";

async function shown(isTerminal: boolean, quiet: boolean, fails = false) {
  const clock = new FakeClock();
  const { io, out, err } = fakeCommandIo();
  const written: string[] = [];
  const rewrite = isTerminal ? (text: string) => void written.push(text) : undefined;
  const work = withProgress("audit", { io: { ...io, rewrite }, clock, quiet }, async (progress) => {
    progress("looking at the router");
    await clock.advance(2500);
    progress(`deleting ${"x".repeat(100)}`);
    if (fails) throw new Error("it failed");
    return 7;
  });
  if (fails) await assert.rejects(work, /it failed/);
  else assert.equal(await work, 7);
  await clock.advance(10_000);
  return { out, err, written };
}

Deno.test("progress is one line at a terminal, with the elapsed time, and is removed in the end", async () => {
  const { out, err, written } = await shown(true, false);
  assert.deepEqual(written.slice(0, 3), [
    "audit: looking at the router …",
    "audit: looking at the router … 1 s",
    "audit: looking at the router … 2 s",
  ]);
  assert.equal(written[3]!.length, 79);
  assert.deepEqual([written.slice(4), out, err], [[""], [], []]);
});

Deno.test("progress is removed when the work fails", async () => {
  assert.equal((await shown(true, false, true)).written.at(-1), "");
});

Deno.test("progress is a line each where there is no terminal", async () => {
  const { out, err } = await shown(false, false);
  assert.deepEqual([out, err.length, err[0]], [[], 2, "audit: looking at the router"]);
});

Deno.test("there is no progress where a program reads the output", async () => {
  for (const isTerminal of [true, false]) {
    const { out, err, written } = await shown(isTerminal, true);
    assert.deepEqual([out, err, written], [[], [], []]);
  }
});
