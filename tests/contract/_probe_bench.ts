// Shared by the contract tests of the probe: a simulated router, this machine as its host, and a way to run the probe.
import assert from "node:assert/strict";
import { runProbe } from "../../src/cli/doctor/doctor.ts";
import { readDoctorOptions } from "../../src/cli/doctor/options.ts";
import { systemRandom } from "../../src/host/random.ts";
import { parseProfile, type RouterProfile } from "../../src/router_profile/profile.ts";
import { parseHostKeys } from "../../src/routeros/ssh/host_key.ts";
import type { HostSide } from "../../src/doctor/probe/question.ts";
import type { ProbeSessionLimits } from "../../src/doctor/probe/session.ts";
import { Ssh2Transport } from "../../src/routeros/ssh/ssh_transport.ts";
import type { SshTransport } from "../../src/routeros/ssh/transport.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { DirectRouter } from "../fakes/direct_router.ts";
import { FakeHostSide } from "../fakes/host_side.ts";
import { scaledClock } from "../fakes/scaled_clock.ts";
import { SkippingClock } from "../fakes/skipping_clock.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import type { RouterFixture } from "../support/simulated_router.ts";

/** The folder on the router in which the probe works. */
export const folder = "/storage-pool/metal-csi";

/** What a probe printed. */
export interface Printed {
  readonly profile: RouterProfile;
  readonly unanswered: Readonly<Record<string, string>>;
  readonly progress: readonly string[];
}

/** The parts of the router that a test may inspect directly. */
export type ProbedRouter = Pick<Simulator, "model" | "violations">;

/** A router and a way to probe it. */
export interface ProbeBench<Watched extends ProbedRouter = ProbedRouter> {
  readonly router: Watched;
  readonly transport: SshTransport;
  probe(options?: RunOptions): Promise<Printed>;
  /** Prepares for a reboot: the run leaves its scratch disk. Returns the lines of progress. */
  prepare(options?: RunOptions): Promise<readonly string[]>;
  /** Everything on the router that a probe could have changed. */
  state(): unknown;
}

/** Options of one run of the probe. */
export interface RunOptions {
  readonly transport?: SshTransport;
  readonly host?: HostSide;
  readonly signal?: AbortSignal;
  readonly basePath?: string;
  /** @default {no end: the machine is slower than its clock} */
  readonly beginMs?: number;
  /** Whether the run is before or after the reboot. */
  readonly reboot?: "before" | "after";
  readonly limits?: ProbeSessionLimits;
  /** Called with each line of progress as it is printed. */
  readonly onProgress?: (line: string) => void;
}

/**
 * A simulator behind real SSH.
 *
 * @param scale how fast its clock runs: for a wait of minutes to be short, and a poll of 100 ms to be longer than a
 * timer's error
 */
export async function withProbeBench(
  options: Partial<SimulatorOptions>,
  test: (bench: ProbeBench<Simulator>) => Promise<void>,
  scale = 200,
): Promise<void> {
  const clock = scaledClock(scale);
  await using router = await startSimulator({
    timingScale: 0,
    clock,
    hostKey: routerHostKey.privatePem,
    ...options,
  });
  const transport = new Ssh2Transport({
    host: "127.0.0.1",
    port: router.sshPort,
    user: "admin",
    authentication: { password: "admin" },
    hostKeys: parseHostKeys(router.hostKeyPublic, "127.0.0.1", router.sshPort),
    warning: assert.fail,
  });
  await test(benchOf(router, transport, scale));
}

/** A simulated router without SSH, on which no time passes but what is waited. */
export async function withDirectBench(
  options: Pick<RouterFixture, "profile" | "behaviours">,
  test: (bench: ProbeBench) => Promise<void>,
): Promise<void> {
  const router = new DirectRouter(new SkippingClock(), folder, options);
  await test(benchOf(router, router, 1));
}

function benchOf<Watched extends ProbedRouter>(
  router: Watched,
  transport: SshTransport,
  scale: number,
): ProbeBench<Watched> {
  const { model } = router;
  if (model.files.find(folder.slice(1)) === undefined) model.files.makeDirectories(folder.slice(1));
  // Work on this bench takes its time by the machine's clock.
  const limits = { commandMs: 60_000 * scale, connectMs: 15_000 * scale, lastCommandMs: 10_000 * scale };
  const host = new FakeHostSide(model);
  const adapters = {
    clock: model.clock,
    random: systemRandom,
    transport,
    host,
    limits,
    beginMs: 240_000 * scale,
    callMs: 10_000 * scale,
    writeMs: 180_000 * scale,
  };
  return {
    router,
    transport,
    async probe(options = {}) {
      const { text, progress } = await run(adapters, options);
      return { profile: parseProfile(text), unanswered: JSON.parse(text).unanswered, progress };
    },
    async prepare(options = {}) {
      const { text, progress } = await run(adapters, { ...options, reboot: "before" });
      assert.equal(text, "", "there is no profile yet");
      return progress;
    },
    state: () => stateOf(model),
  };
}

/** Runs a probe, and returns what it printed on both streams. */
async function run(adapters: Omit<Parameters<typeof runProbe>[1], "writeText">, {
  onProgress = () => {},
  signal = new AbortController().signal,
  basePath = folder,
  reboot,
  ...own
}: RunOptions): Promise<{ readonly text: string; readonly progress: readonly string[] }> {
  const printed: string[] = [];
  const progress: string[] = [];
  const io = {
    out: (line: string) => void printed.push(line),
    err: (line: string) => {
      progress.push(line);
      onProgress(line);
    },
    env: () => undefined,
    signal,
  };
  const reach = ["--rds-address", "127.0.0.1", "--rds-key", "/key", "--rds-insecure-skip-verify"];
  const args = [
    "--probe",
    ...reboot === undefined ? [] : [`--${reboot}-reboot`],
    "--base-path",
    basePath,
    ...reach,
  ];
  const parts = { ...adapters, ...own, writeText: () => assert.fail("no --output was given") };
  assert.equal(await runProbe(readDoctorOptions(args, () => undefined), parts, io), 0);
  return { text: printed.join("\n"), progress };
}

function stateOf(model: ProbedRouter["model"]): unknown {
  return structuredClone({
    disks: model.disks.list(),
    files: model.files.list(),
    subvolumes: model.subvolumes.list(),
    exports: model.exports.list(),
    free: model.pools().map((pool) => model.freeBytes(pool)),
  });
}
