import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { method, type MethodsOf } from "../../csi/server/call.ts";
import type { ControllerRpcs } from "../../csi/generated/csi.ts";
import { VolumeError } from "../../volume/errors.ts";
import { Lead, whileLeading } from "./leadership.ts";

const isUnavailable = (form: RegExp) => (error: unknown) =>
  VolumeError.is(error, "unavailable") && form.test(error.message);

Deno.test("a controller that waits for the lead says who has it", () => {
  const lead = new Lead(new FakeClock());
  assert.throws(() => lead.assert(), isUnavailable(/no controller leads yet/));
  lead.heldBy("rds-csi-1");
  assert.throws(() => lead.assert(), isUnavailable(/another controller leads: holder=rds-csi-1/));
  assert.equal(lead.isHeld, false);
});

Deno.test("a lead ends by the clock, before anything else has noticed it", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  lead.holdUntil(clock.monotonicMs() + 10_000);
  await clock.advance(9_999);
  assert.equal(lead.refusal(), undefined);
  await clock.advance(1);
  assert.match(lead.refusal()!, /could not renew/);
  lead.holdUntil(clock.monotonicMs() + 10_000);
  assert.equal(lead.refusal(), undefined, "nobody had it in between, or it could not have been renewed");
});

Deno.test("a lead that was lost does not come back", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  lead.holdUntil(clock.monotonicMs() + 10_000);
  lead.lose("another controller has taken it");
  lead.holdUntil(clock.monotonicMs() + 10_000);
  assert.match(lead.refusal()!, /has lost the lead: another controller/);
  assert.equal(lead.isHeld, false);
  assert.equal(await lead.lost, "another controller has taken it");
});

Deno.test("a lead that another controller has had since is lost, even when that one has stopped", async () => {
  for (const holder of ["other", ""]) {
    const clock = new FakeClock();
    const lead = new Lead(clock);
    lead.holdUntil(clock.monotonicMs() + 10_000);
    await clock.advance(60_000);
    lead.heldBy(holder);
    lead.holdUntil(clock.monotonicMs() + 10_000);
    assert.match(lead.refusal()!, /another controller has taken it/);
    assert.equal(await lead.lost, "another controller has taken it");
  }
});

Deno.test("a caller that asks for readiness waits for the lead, for at most half of its time", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  let answers: string[] = [];
  const ask = (timeoutMs: number) => {
    const context = { ...fakeCall(clock), deadlineMs: clock.now() + timeoutMs };
    void lead.held(context).then(() => answers.push("ready"), (error) => answers.push(error.message));
  };
  for (const ms of [10_000, 60_000, Infinity]) ask(ms);
  await clock.advance(4_999);
  assert.equal(answers.length, 0);
  await clock.advance(1);
  assert.match(answers.join(), /^Cannot serve the call because no controller leads yet$/);
  await clock.advance(15_000);
  assert.equal(answers.length, 3);
  answers = [];
  ask(60_000);
  await clock.advance(1_000);
  lead.holdUntil(clock.monotonicMs() + 10_000);
  await clock.advance(0);
  assert.deepEqual(answers, ["ready"]);
  assert.equal(clock.waiting, 0);
});

Deno.test("a caller that waits for the lead is refused when the controller stops", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  const asked = assert.rejects(lead.held(fakeCall(clock)), isUnavailable(/it stops/));
  lead.end("it stops");
  await asked;
  await assert.rejects(lead.begun(new AbortController().signal), isUnavailable(/it stops/));
});

Deno.test("work that runs under a lead ends with it, and work of the next one does not", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  const sleep = () =>
    lead.during(fakeCall(clock), ({ signal }) => clock.sleep(5_000, signal).then(() => "done"));
  lead.holdUntil(clock.monotonicMs() + 1_000);
  const cut = assert.rejects(sleep(), isUnavailable(/could not renew/));
  await clock.advance(1_000);
  lead.interrupt();
  await cut;
  lead.holdUntil(clock.monotonicMs() + 10_000);
  const next = sleep();
  await clock.advance(5_000);
  assert.equal(await next, "done");
  const last = assert.rejects(sleep(), isUnavailable(/has lost the lead: taken/));
  lead.lose("taken");
  await last;
});

Deno.test("a change is not answered as done once the lead is over", async () => {
  const clock = new FakeClock();
  const lead = new Lead(clock);
  let calls = 0;
  const methods: MethodsOf<ControllerRpcs> = {
    DeleteVolume: method({
      changing: true,
      lockKey: (request) => request.volumeId,
      handler: async () => {
        calls++;
        await clock.sleep(11_000);
        return {};
      },
    }),
  };
  const { DeleteVolume } = whileLeading(methods, lead);
  const call = () => DeleteVolume!.handler({ volumeId: "a" } as never, fakeCall(clock));
  await assert.rejects(call(), isUnavailable(/no controller leads/));
  assert.equal(calls, 0);
  lead.holdUntil(clock.monotonicMs() + 10_000);
  const late = assert.rejects(call(), isUnavailable(/could not renew/));
  await clock.advance(11_000);
  await late;
  const waits = call();
  await clock.advance(1_000);
  assert.equal(calls, 1, "nothing is begun under a lead that ran out");
  lead.holdUntil(clock.monotonicMs() + 20_000);
  await clock.advance(11_000);
  assert.deepEqual(await waits, {});
  assert.equal(calls, 2);
});
