import assert from "node:assert/strict";
import { FakeClock } from "../fakes/clock.ts";
import { FakeVolumeStore } from "../fakes/volume_store.ts";
import { settingOf } from "./schedule.ts";
import { Controllers } from "./controllers.ts";

function start(): { readonly clock: FakeClock; readonly controllers: Controllers } {
  const clock = new FakeClock();
  const store = new FakeVolumeStore(clock);
  const setting = settingOf(1);
  return { clock, controllers: new Controllers({ clock, store, setting, wallOffsetMs: () => 0 }) };
}

Deno.test("a leader that is cut off serves until its lead ends, and another one leads only then", async () => {
  const { clock, controllers } = start();
  const old = controllers.leader;
  controllers.isolate({ step: "cut-controller", afterMs: 0, forMs: 40_000, renewedMs: 1_000 });
  await clock.advance(8_999);
  assert.equal(old.process.lead.refusal(), undefined);
  await clock.advance(1);
  assert.notEqual(old.process.lead.refusal(), undefined);
  await clock.advance(4_999);
  assert.equal(controllers.leader, old);
  await clock.advance(1);
  assert.notEqual(controllers.leader, old);
  assert.equal(controllers.former, old);
  await clock.advance(27_000);
  assert.ok(old.process.isDead, "a process whose lead is lost ends");
});

Deno.test("a leader that is cut off for a short time leads on", async () => {
  const { clock, controllers } = start();
  const { leader } = controllers;
  controllers.isolate({ step: "cut-controller", afterMs: 0, forMs: 12_000, renewedMs: 0 });
  await clock.advance(13_000);
  assert.equal(controllers.leader, leader);
  assert.equal(leader.process.lead.refusal(), undefined);
  await clock.advance(60_000);
  assert.equal(controllers.leader, leader);
});

Deno.test("a frozen leader goes on where it stood, and finds that its lead is over", async () => {
  const { clock, controllers } = start();
  const { process } = controllers.leader;
  const seen: (string | undefined)[] = [];
  controllers.isolate({ step: "freeze", afterMs: 0, forMs: 20_000, renewedMs: 0 });
  void process.clock.sleep(1_000).then(() => seen.push(process.lead.refusal()));
  await clock.advance(19_999);
  assert.deepEqual(seen, []);
  await clock.advance(1);
  assert.deepEqual(seen, ["this controller could not renew its lead in time"]);
  await clock.advance(1_000);
  assert.ok(process.isDead);
});
