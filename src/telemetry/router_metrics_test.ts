import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { FakeSshTransport } from "../../tests/fakes/ssh_transport.ts";
import { withoutBackend } from "../../tests/support/backend_label.ts";
import { command, ros } from "../routeros/console/command.ts";
import { Session } from "../routeros/ssh/session.ts";
import { ConnectError } from "../routeros/ssh/transport.ts";
import { VolumeError } from "../volume/errors.ts";
import { MetricRegistry } from "./metrics.ts";
import { RouterMetrics } from "./router_metrics.ts";

function counting() {
  const registry = new MetricRegistry();
  const metrics = new RouterMetrics(registry, "default");
  const value = (series: string) => {
    const line = withoutBackend(registry.expose()).split("\n").find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  return { metrics, value };
}

Deno.test("RouterMetrics counts commands by kind and outcome, and the time of those that ran", () => {
  const { metrics, value } = counting();
  metrics.command({ kind: "view", outcome: "ended", ms: 200 });
  metrics.command({ kind: "view", outcome: "timeout", ms: 300 });
  metrics.command({ kind: "change", outcome: "not-run", ms: 400 });
  assert.equal(value('rds_csi_router_commands_total{kind="view",outcome="ended"}'), 1);
  assert.equal(value('rds_csi_router_commands_total{kind="view",outcome="timeout"}'), 1);
  assert.equal(value('rds_csi_router_commands_total{kind="change",outcome="not-run"}'), 1);
  assert.equal(value('rds_csi_router_command_seconds_count{kind="view"}'), 2);
  assert.equal(value('rds_csi_router_command_seconds_sum{kind="view"}'), 0.5);
  assert.equal(value('rds_csi_router_command_seconds_count{kind="change"}'), undefined);
});

Deno.test("RouterMetrics shows a RouterOS that is exploited through SSH, until it is upgraded", () => {
  const { metrics, value } = counting();
  const shown = () => value("rds_csi_router_ssh_exploited");
  assert.equal(shown(), 0);
  metrics.identified({ version: "7.24.1 (stable)", board: "RDS2216", sshExploited: true });
  assert.equal(shown(), 1);
  metrics.identified({ version: "7.24.4 (stable)", board: "RDS2216", sshExploited: false });
  assert.equal(shown(), 0);
});

/** A session whose router answers, freezes and comes back, as the test chooses. */
function freezing() {
  const { metrics, value } = counting();
  const clock = new FakeClock();
  const ssh = new FakeSshTransport();
  const session = new Session({
    transport: ssh,
    clock,
    random: new SeededRandom(),
    observer: metrics,
    maxChannels: 2,
  });
  metrics.load(() => session.load);
  const run = (key: string) =>
    session.run({ kind: "view", key, command: command(ros`/test name=${key}`), context: fakeCall(clock) });
  const never = () => new Promise<never>(() => {});
  const answer = ssh.router;
  return {
    ...{ value, clock, ssh, session, run },
    freeze() {
      ssh.router = never;
      ssh.onConnect = async () => {
        await clock.sleep(15_000);
        throw new ConnectError("it says nothing", { lasting: false });
      };
    },
    thaw() {
      ssh.router = answer;
      ssh.onConnect = () => {};
    },
  };
}

Deno.test("a frozen router shows as commands that wait, then as an open breaker, then as a reconnect", async () => {
  const { value, clock, ssh, session, run, freeze, thaw } = freezing();
  const shown = () =>
    ["connected", "breaker_open", "commands_waiting"].map((name) => value(`rds_csi_router_${name}`));
  assert.deepEqual(shown(), [0, 0, 0]);
  await run("a");
  assert.deepEqual(shown(), [1, 0, 0]);
  freeze();
  const asked = ["a", "b", "c"].map((key) =>
    run(key).then(({ ended }) => ended, (error) => VolumeError.is(error) && error.kind)
  );
  await clock.advance(0);
  assert.deepEqual(shown(), [1, 0, 1]);
  for (let i = 0; i < 300 && value("rds_csi_router_breaker_open") === 0; i++) await clock.advance(1000);
  assert.deepEqual(shown(), [1, 1, 0], "it is still connected");
  for (let i = 0; i < 300 && value("rds_csi_router_connected") === 1; i++) await clock.advance(1000);
  assert.deepEqual(shown(), [0, 1, 0]);
  assert.deepEqual(await Promise.all(asked), [false, false, "unavailable"]);
  assert.equal(value("rds_csi_router_connection_failures_total"), 0);
  assert.equal(ssh.attempts, 1);
  await clock.advance(5_000);
  const trying = run("a").catch(() => "refused");
  await clock.advance(20_000);
  assert.equal(await trying, "refused");
  assert.equal(value("rds_csi_router_breaker_open"), 1, "it stays open");
  thaw();
  await clock.advance(10_000);
  assert.equal((await run("a")).ended, true);
  assert.deepEqual(shown(), [1, 0, 0]);
  assert.equal(value("rds_csi_router_reconnects_total"), 1);
  session.close();
  assert.deepEqual(shown(), [0, 0, 0]);
});
