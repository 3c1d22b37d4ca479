import assert from "node:assert/strict";
import { join } from "node:path";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { ScratchFolder } from "../../src/cli/acceptance/scratch.ts";
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

/** Which halves of a driver are started, and with what flags beside the usual ones. */
export interface StackOptions {
  /** A node's volumes are files of this machine, on loop devices. */
  readonly mode: "controller" | "all";
  readonly router?: readonly string[];
  readonly driver?: readonly string[];
}

/**
 * Starts both, lets `work` use them, and takes them away again.
 *
 * @throws {AssertionError} where one of them did not end well, or something is left.
 */
export async function withStack<Result>(
  subject: Driver,
  { mode, router = [], driver: flags = [] }: StackOptions,
  work: (running: Running) => Promise<Result>,
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
  const backing = join(folder, "router");
  const simulator = start("sources", "simulator", [
    ...["--ssh-port", String(sshPort), "--control-port", String(controlPort), "--timing-scale", "0"],
    // A router that grows disks in use: volumes are measured while they are published.
    ...["--user", "csi", "--password", "bench", "--behaviour", "grow=live"],
    ...mode === "all" ? ["--backing", backing, "--exporter", "loop"] : [],
    ...router,
  ]);
  const controlUrl = `http://127.0.0.1:${controlPort}`;
  const countUrl = `${controlUrl}/count`;
  await simulator.ready(async () => (await fetch(countUrl).catch(() => undefined))?.ok ?? false);
  const address = `unix://${folder}/csi.sock`;
  const driver = start(subject, "serve", [
    ...["--mode", mode, "--endpoint", address, "--node-id", "bench-node", "--known-node", "bench-node"],
    ...await serveArgs(folder, sshPort),
    ...["--metrics-address", `127.0.0.1:${metricsPort}`],
    ...mode === "all" ? ["--connector", "loop", "--loop-backing", backing] : [],
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

async function serveArgs(folder: string, sshPort: number): Promise<string[]> {
  const [passwordFile, profile] = [join(folder, "password"), join(folder, "router-profile.json")];
  await Deno.writeTextFile(passwordFile, "bench\n", { mode: 0o600 });
  const answers = { grow: "live" } as const;
  await Deno.writeTextFile(profile, formatProfile({ ...getProfile("ros-7.24"), answers }));
  return [
    ...["--rds-address", "127.0.0.1", "--rds-port", String(sshPort), "--rds-user", "csi"],
    ...["--rds-password-file", passwordFile, "--rds-insecure-skip-verify", "--cluster-id", "bench"],
    ...["--state-dir", join(folder, "state"), "--unexport-grace", "0s", "--router-profile", profile],
  ];
}

async function metersOf(countUrl: string): Promise<Meters> {
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
