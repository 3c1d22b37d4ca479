import assert from "node:assert/strict";
import { join } from "node:path";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { ScratchFolder } from "../../src/cli/demo/scratch.ts";
import { systemClock } from "../../src/host/clock.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { freePort, type Part, programOf, startProgram, type Subject } from "../support/parts.ts";
import { print } from "../../tools/print.ts";
import type { Meters } from "./rpc.ts";

/** A driver on a simulated router, each a process of its own. */
export interface Running {
  readonly address: string;
  readonly folder: string;
  readonly driver: Part;
  /** Where the router's faults are armed and its state is shown, see docs/reference/simulator.md. */
  readonly controlUrl: string;
  readonly metricsUrl: string;
  /** Of the driver's inspector, where it has one. */
  readonly inspectAddress: string;
  meters(): Promise<Meters>;
}

/** What is started as the driver; inspected are the sources, with an inspector. */
export type Driver = Subject | "inspected";

/**
 * Starts both, lets `work` use them, and takes them away again. @param flags of the driver, beside the usual ones
 *
 * @throws {AssertionError} where one of them did not end well, or something is left.
 */
export async function withStack<Result>(
  subject: Driver,
  mode: "controller" | "node" | "all",
  scale: number,
  work: (running: Running) => Promise<Result>,
  flags: readonly string[] = [],
): Promise<Result> {
  await using undo = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-bench-" });
  undo.defer(async () => assert.deepEqual(await ScratchFolder.of(folder, systemClock).remove(), []));
  const inspectAddress = `127.0.0.1:${freePort()}`;
  const start = (subject: Driver, command: string, args: readonly string[]) => {
    const program = subject === "inspected" ? inspected(inspectAddress) : programOf(subject);
    const part = startProgram(command, [...program, command], folder, args);
    undo.defer(async () => assert.deepEqual(await part.stop(), []));
    return part;
  };
  const [sshPort, controlPort, metricsPort] = [freePort(), freePort(), freePort()];
  const simulator = start("sources", "simulator", [
    ...["--ssh-port", String(sshPort), "--control-port", String(controlPort)],
    ...["--backing", join(folder, "router"), "--exporter", "loop", "--timing-scale", String(scale)],
    ...["--user", "csi", "--password", "bench", ...growsLive.simulator],
  ]);
  const controlUrl = `http://127.0.0.1:${controlPort}`;
  const countUrl = `${controlUrl}/count`;
  await simulator.ready(async () => (await fetch(countUrl).catch(() => undefined))?.ok ?? false);
  const address = `unix://${folder}/csi.sock`;
  const metrics = ["--metrics-address", `127.0.0.1:${metricsPort}`];
  const driver = start(subject, "serve", [
    ...await serveArgs(folder, address, mode, sshPort),
    ...metrics,
    ...flags,
  ]);
  await driver.ready(() => isReady(address));
  const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  const meters = () => metersOf(countUrl);
  try {
    return await work({ address, folder, driver, controlUrl, metricsUrl, inspectAddress, meters });
  } catch (error) {
    print(Deno.inspect(error)); // Before what the end of both has to say.
    throw error;
  }
}

function inspected(address: string): readonly string[] {
  const [deno = "", run = "", ...others] = programOf("sources");
  return [deno, run, `--inspect=${address}`, ...others];
}

async function serveArgs(folder: string, address: string, mode: string, sshPort: number): Promise<string[]> {
  const passwordFile = join(folder, "password");
  await Deno.writeTextFile(passwordFile, "bench\n", { mode: 0o600 });
  return [
    ...["--mode", mode, "--endpoint", address, "--node-id", "bench-node", "--known-node", "bench-node"],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(sshPort), "--rds-user", "csi"],
    ...["--rds-password-file", passwordFile, "--rds-insecure-skip-verify", "--cluster-id", "bench"],
    ...[
      "--connector",
      "loop",
      "--loop-backing",
      join(folder, "router"),
      "--state-dir",
      join(folder, "state"),
    ],
    ...["--unexport-grace", "0s"],
    ...await growsLive.driver(folder),
  ];
}

/** Flags of a router that grows disks in use, and of a driver that was told so: volumes are measured while they are published. */
export const growsLive = {
  simulator: ["--behaviour", "grow=live"],
  async driver(folder: string): Promise<string[]> {
    const path = join(folder, "router-profile.json");
    await Deno.writeTextFile(path, formatProfile({ ...getProfile("ros-7.24"), answers: { grow: "live" } }));
    return ["--router-profile", path];
  },
};

/** What a simulated router has counted. */
export async function metersOf(countUrl: string): Promise<Meters> {
  const { execs, bytes } = await (await fetch(countUrl)).json();
  return { commands: execs, bytes };
}

/** Whether the driver at an address says that it is ready. */
export async function isReady(address: string): Promise<boolean> {
  const clients = dial(loadCsi(), address, systemClock);
  try {
    return (await clients.identity.call("Probe", {}, 2_000)).ready?.value ?? false;
  } catch {
    return false; // Not there yet; whoever waits gives up in time.
  } finally {
    clients.close();
  }
}
