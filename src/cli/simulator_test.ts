import assert from "node:assert/strict";
import { control } from "../../tests/support/control_port.ts";
import { fileURLToPath } from "node:url";
import { FlagError } from "./flags.ts";
import type { CommandIo } from "./io.ts";
import { formatProfile } from "../router_profile/profile.ts";
import { getProfile } from "../simulator/profile.ts";
import { simulatorCommand } from "./simulator.ts";

interface State {
  readonly disks: readonly unknown[];
  readonly pools: readonly Readonly<Record<string, unknown>>[];
}

interface Played {
  readonly profile: string;
  readonly behaviours: Readonly<Record<string, unknown>>;
}

function recording(): { io: CommandIo; printed: string[]; stop: AbortController; ready: Promise<string> } {
  const stop = new AbortController();
  const printed: string[] = [];
  const { promise: ready, resolve } = Promise.withResolvers<string>();
  const out = (line: string) => {
    printed.push(line);
    resolve(line);
  };
  const io = {
    out,
    err: (line: string) => void printed.push(line),
    env: () => undefined,
    signal: stop.signal,
  };
  return { io, printed, stop, ready };
}

Deno.test("simulatorCommand() reports its ports and its host key when it is ready, and stops cleanly", async () => {
  const { io, stop, ready } = recording();
  const flags = ["--ssh-port", "0", "--control-port=0", "--seed-disks", "3", "--behaviour", "grow=never"];
  const ended = simulatorCommand([...flags, "--profile", "ros-7.21", "--timing-scale", "0"], io);
  const line = JSON.parse(await ready);
  assert.equal(line.ready, true);
  assert.match(line.hostKey, /^ssh-rsa AAAA/);
  assert.ok(line.sshPort > 0);
  const state = await control<State>(line, "GET /state");
  assert.equal(state.disks.length, 6);
  const { profile, behaviours } = await control<Played>(line, "GET /profile");
  assert.deepEqual([profile, behaviours["grow"]], ["ros-7.21", "never"]);
  stop.abort();
  assert.equal(await ended, 0);
  await assert.rejects(fetch(`${line.controlUrl}/state`));
});

Deno.test("simulatorCommand() plays a profile file, on pools of all kinds", async () => {
  const { io, stop, ready } = recording();
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  try {
    const played = { ...getProfile("ros-7.21"), name: "probed", answers: { grow: "live" } } as const;
    await Deno.writeTextFile(file, formatProfile(played));
    const flags = ["--ssh-port", "0", "--control-port", "0", "--timing-scale", "0", "--profile", file];
    const pools = ["--pool", "fast:2T:xfs", "--pool", "slow:1G", "--pool", "big"];
    const ended = simulatorCommand([...flags, ...pools], io);
    const line = JSON.parse(await ready);
    const { profile, behaviours } = await control<Played>(line, "GET /profile");
    assert.deepEqual([profile, behaviours["grow"]], ["probed", "live"]);
    const state = await control<State>(line, "GET /state");
    assert.deepEqual(
      state.pools.map((pool) => [pool["slot"], pool["fs"], pool["fs-label"], pool["free"]]),
      [
        ["fast", "xfs", "fast-fs", 2199023255552],
        ["slow", "btrfs", "slow-fs", 1073741824],
        ["big", "btrfs", "big-fs", 7301927047168],
      ],
    );
    stop.abort();
    assert.equal(await ended, 0);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("simulatorCommand() reports the NVMe port when it serves disks itself", async () => {
  const { io, stop, ready } = recording();
  const flags = ["--ssh-port", "0", "--control-port=0", "--exporter", "tcp", "--nvme-port", "0"];
  const ended = simulatorCommand(flags, io);
  const { nvmePort } = JSON.parse(await ready);
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: nvmePort });
  connection.close();
  stop.abort();
  assert.equal(await ended, 0);
  await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port: nvmePort }));
});

const wrong: readonly (readonly [flags: readonly string[], problem: RegExp])[] = [
  [["--ssh-port", "70000"], /--ssh-port/],
  [["--timing-scale", "-1"], /--timing-scale/],
  [["--exporter", "nvmet"], /--exporter/],
  [["--exporter", "loop"], /--exporter/],
  [["--exporter", "rdma"], /--exporter/],
  [["--nvme-port", "70000"], /--nvme-port/],
  [["--profile", "ros-1"], /--profile/],
  [["--profile", "/dev/null"], /--profile/],
  [["--profile", "deno.json"], /--profile/],
  [["--pool", "a:b"], /--pool/],
  [["--pool", "a:1G:ext4"], /--pool/],
  [["--pool", "A"], /--pool/],
  [["--behaviour", "grow"], /--behaviour/],
  [["--behaviour", "grow=later"], /--behaviour/],
  [["--behaviour", "foo=1"], /--behaviour/],
  [["--host-key", "/nonexistent/key"], /--host-key/],
  [["--authorized-key", "/nonexistent/key"], /--authorized-key/],
  [["--seed-disks", "many"], /--seed-disks/],
  [["--frobnicate"], /--frobnicate/],
];

for (const [flags, problem] of wrong) {
  Deno.test(`simulatorCommand() throws FlagError for ${flags.join(" ")}`, async () => {
    const { io } = recording();
    await assert.rejects(
      simulatorCommand([...flags], io),
      (error) => error instanceof FlagError && problem.test(error.message),
    );
  });
}

Deno.test("simulatorCommand() fails with a sentence when it cannot start", async () => {
  const { io, printed } = recording();
  const flags = ["--ssh-port", "0", "--control-port", "0", "--listen", "203.0.113.1"];
  assert.equal(await simulatorCommand(flags, io), 1);
  assert.match(printed.join("\n"), /cannot run/);
});

Deno.test("--replay prints what the simulator answers otherwise than a report, and exits with 1 where there is something", async () => {
  const example = fileURLToPath(new URL("../../tests/captures/reports/simulator.json", import.meta.url));
  const replay = async (path: string) => {
    const { io, printed } = recording();
    return { code: await simulatorCommand(["--replay", path], io), printed };
  };
  const same = await replay(example);
  assert.equal(same.code, 0, same.printed.join("\n"));
  assert.match(same.printed.at(-1)!, /^replay: \d+ commands, 0 differences$/);
  const altered = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  try {
    await Deno.writeTextFile(
      altered,
      (await Deno.readTextFile(example)).replace('"sector-size":512', '"sector-size":4096'),
    );
    const other = await replay(altered);
    assert.equal(other.code, 1);
    assert.match(other.printed[0]!, /value at .*sector-size: router 4096, simulator 512/);
    await Deno.writeTextFile(altered, "{}");
    assert.match((await replay(altered)).printed.join(), /no acceptance report/);
  } finally {
    await Deno.remove(altered);
  }
});
