import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import { TimedFiles } from "./timed_files.ts";

/** Operations that end only when told to; returns the kind of error, or "done". */
function deps(threads: number) {
  const clock = new FakeClock();
  let hung = 0;
  const files = new TimedFiles(clock, { threads, onHang: () => hung++ });
  const begun: string[] = [];
  const release = new Map<string, () => void>();
  const run = (path: string) =>
    files.run(path, () => {
      begun.push(path);
      const { promise, resolve } = Promise.withResolvers<void>();
      release.set(path, resolve);
      return promise;
    }).then(() => "done", (error) => VolumeError.is(error) ? error.kind : String(error));
  return { clock, files, begun, release, run, hung: () => hung };
}

Deno.test("run() gives up an operation that hangs, and begins no other one on its path", async () => {
  const { clock, files, begun, run, hung } = deps(16);
  const first = run("/dead");
  const others = Array.from({ length: 40 }, () => run("/dead"));
  await clock.advance(20_000);
  assert.equal(await first, "deadline");
  assert.deepEqual(new Set(await Promise.all(others)), new Set(["unavailable"]));
  assert.deepEqual([await run("/dead"), begun, files.hanging], ["unavailable", ["/dead"], 1]);
  assert.equal(hung(), 1);
});

Deno.test("run() leaves threads to the runtime: an operation that finds none in time is refused, and never begun later", async () => {
  const { clock, begun, release, run } = deps(2);
  const hung = [run("/a"), run("/b")];
  const late = run("/c");
  await clock.advance(10_000);
  assert.equal(await late, "unavailable");
  const next = run("/d");
  release.get("/a")!();
  await clock.advance(0);
  release.get("/d")!();
  assert.deepEqual([await hung[0], await next, begun], ["done", "done", ["/a", "/b", "/d"]]);
  release.get("/b")!();
  await hung[1];
});
