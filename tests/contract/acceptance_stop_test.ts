// An acceptance run that is killed at any of its commands leaves what the next one removes; one that is stopped removes it
// itself. What a killed probe leaves is the subject of doctor_probe_stop_test.ts.
import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import { isLong } from "../support/long.ts";
import { WatchedTransport } from "./_watched_transport.ts";
import { type AcceptanceBench, knownProfile, stepsOf, withAcceptanceBench } from "./_acceptance_bench.ts";

const adapters = { probe: knownProfile, kinds: [] };
const parallel = 3;
/** One of so many commands is tried. */
const every = isLong ? 1 : 6;

/** How many commands a run has. */
async function countCommands(): Promise<number> {
  let sent = 0;
  await withAcceptanceBench({}, async ({ run, transport }) => {
    const watched = new WatchedTransport(transport);
    await run({ transport: watched, adapters });
    ({ sent } = watched);
  });
  assert.ok(sent > 15, `${sent} commands`);
  return sent;
}

/** Runs until the router is lost for good at a command. */
async function loseRouter({ run, transport }: AcceptanceBench, at: number): Promise<void> {
  const watched = new WatchedTransport(transport, at, (watched) => {
    watched.gone = true;
    watched.drop();
  });
  await run({ transport: watched, adapters }).catch((error) => {
    if (!VolumeError.is(error)) throw error;
  });
}

async function atCommands(test: (at: number) => Promise<void>): Promise<void> {
  const left = Array.from({ length: await countCommands() }, (_, index) => index + 1).filter((at) =>
    at % every === 0
  );
  const work = async () => {
    for (let at = left.shift(); at !== undefined; at = left.shift()) await test(at);
  };
  const results = await Promise.allSettled(Array.from({ length: parallel }, work));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

Deno.test("a run that loses the router for good at a command is cleaned up by the next one", () =>
  atCommands((at) =>
    withAcceptanceBench({}, async (bench) => {
      const { run, state, simulator } = bench;
      const before = state();
      await loseRouter(bench, at);
      const { code, lines } = await run({ adapters });
      assert.equal(code, 0, `${at}: ${lines.join("\n")}`);
      assert.deepEqual(state(), before, `lost at command ${at}`);
      assert.deepEqual(simulator.violations.list(), []);
    })
  ));

Deno.test("what the steps could not remove is removed by another driver, before the listing", () =>
  withAcceptanceBench({}, async ({ run, transport, state }) => {
    const before = state();
    const watched = new WatchedTransport(transport);
    const say = (text: string) => {
      // The router is away from the withdrawal until the steps have given up.
      if (text === "fence: withdrawal during writes") {
        watched.gone = true;
        watched.drop();
      }
      if (text.startsWith("while cleaning up: ")) watched.gone = false;
    };
    const { report } = await run({ transport: watched, adapters: { ...adapters, say } });
    assert.deepEqual(stepsOf(report, "fail"), ["fence: withdrawal during writes"]);
    assert.ok(stepsOf(report, "pass").includes("nothing left"));
    assert.deepEqual(state(), before);
  }));

Deno.test("a call that takes too long fails its own step, and the calls after it are answered", () =>
  withAcceptanceBench({ scale: 1 }, async ({ run, state, simulator }) => {
    const before = state();
    const say = (text: string) => {
      if (text !== "fence: withdrawal during writes") return;
      simulator.faults.arm({ match: 'export="no"', nth: 1, times: 1, action: "delay", value: 4000 });
    };
    const { report, said } = await run({ adapters: { ...adapters, say, callMs: 3000 } });
    assert.equal(simulator.faults.list()[0]?.struck, 1);
    const [failed, ...others] = report.steps.filter(({ result }) => result === "fail");
    assert.equal(failed?.step, "fence: withdrawal during writes");
    assert.match(failed.note, /DEADLINE_EXCEEDED/);
    assert.deepEqual([others, said], [[], []]);
    assert.ok(stepsOf(report, "pass").includes("nothing left"));
    assert.deepEqual(state(), before);
  }));

Deno.test("a run that is stopped at a command says so, and leaves nothing", () =>
  atCommands((at) =>
    withAcceptanceBench({}, async ({ run, transport, state }) => {
      const before = state();
      const stop = new AbortController();
      const watched = new WatchedTransport(transport, at, () =>
        stop.abort(new VolumeError("cancelled", "Stopped by SIGINT")));
      const error = await run({ transport: watched, signal: stop.signal, adapters }).then(() =>
        undefined, (error) =>
        error);
      if (error !== undefined) {
        assert.match(error.message, /Stopped by SIGINT/);
      }
      assert.deepEqual(state(), before, `stopped at command ${at}`);
    })
  ));
