import assert from "node:assert/strict";
import type { Guest } from "../kit/guest.ts";
import type { Bench } from "../kit/suite.ts";
import { isLockedUp, startDespiteLockup } from "./lockup.ts";

Deno.test("isLockedUp() finds a processor that is stuck for good, and not one that was starved for a while", () => {
  const starved = "[   68.316946] watchdog: BUG: soft lockup - CPU#0 stuck for 45s! [kubelet:374]\n";
  assert.equal(isLockedUp(""), false);
  assert.equal(isLockedUp(starved), false);
  assert.equal(
    isLockedUp(`${starved}[   96.527192] watchdog: BUG: soft lockup - CPU#1 stuck for 70s! [agent:404]\n`),
    true,
  );
});

Deno.test("startDespiteLockup() cuts the power of a guest that is locked up, and starts it once more", async () => {
  const done: string[] = [];
  let console = "guest: ready\n";
  const note = (what: string) => () => Promise.resolve(void done.push(what));
  const guest = {
    name: "n1",
    console: () => Promise.resolve(console),
    registers: () => Promise.resolve("RIP=0"),
    cutPower: note("cut"),
    boot: note("boot"),
  };
  const bench = { keep: note("keep"), report: { say: note("say") } };
  const start = () => {
    done.push("start");
    if (done.length > 1) return Promise.resolve();
    console += "watchdog: BUG: soft lockup - CPU#1 stuck for 70s! [agent:404]\n";
    return new Promise<void>(() => {});
  };
  await startDespiteLockup(bench as unknown as Bench, guest as unknown as Guest, start);
  assert.deepEqual(done, ["start", "keep", "say", "cut", "boot", "start"]);
  await startDespiteLockup(bench as unknown as Bench, guest as unknown as Guest, start);
  assert.equal(done.length, 7, "what its console said before this start does not count");
  const failing = startDespiteLockup(
    bench as unknown as Bench,
    guest as unknown as Guest,
    () => Promise.reject(new Error("no")),
  );
  await assert.rejects(failing, /^Error: no$/);
});
