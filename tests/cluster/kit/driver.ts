import { basename, join } from "node:path";
import { status } from "@grpc/grpc-js";
import { type CsiClients, dial } from "../../../src/csi/server/client.ts";
import { loadCsi } from "../../../src/csi/server/proto.ts";
import { systemClock } from "../../../src/host/clock.ts";
import { formatProfile } from "../../../src/router_profile/profile.ts";
import { getProfile } from "../../../src/simulator/profile.ts";
import { freePort, type Part, startPart, type Subject } from "../../support/parts.ts";
import type { Chart } from "./chart.ts";
import { argsForRig, envForRig, type Fates, flagsOf, kept } from "./rendered_args.ts";
import { type Router, routerPassword } from "./router.ts";

/** The driver's name in the API. */
export const driverName = "rds.csi.srvlab.io";

/** One `rds-csi serve` that can be killed and started again at the same socket. */
export class Driver {
  readonly socket: string;
  readonly #metricsPort: number;
  readonly #start: (metricsAddress: string) => Part;
  #part: Part | undefined;
  #clients: CsiClients | undefined;

  constructor(socket: string, start: (metricsAddress: string) => Part) {
    this.socket = socket;
    this.#metricsPort = freePort();
    this.#start = start;
  }

  /** Starts it, and waits until it serves. */
  async start(signal?: AbortSignal): Promise<void> {
    this.#part = this.#start(`127.0.0.1:${this.#metricsPort}`);
    await this.#part.ready(() => this.#serves(), 50, signal);
    // A client that has found no server waits longer and longer before it tries again.
    this.#hangUp();
  }

  #hangUp(): void {
    this.#clients?.close();
    this.#clients = undefined;
  }

  /** Clients for calls besides those of the sidecars. */
  get clients(): CsiClients {
    return this.#clients ??= dial(loadCsi(), `unix://${this.socket}`, systemClock);
  }

  /** The present value of one of its metrics, by its printed name and labels. */
  async metric(name: string): Promise<number> {
    const url = `http://127.0.0.1:${this.#metricsPort}/metrics`;
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    const line = (await response.text()).split("\n").find((one) => one.startsWith(`${name} `));
    if (line === undefined) throw new Error(`the driver has no metric ${name}`);
    return Number(line.slice(name.length + 1));
  }

  /** How often it has logged this message since it was started. */
  async logged(message: string): Promise<number> {
    const printed = await this.#part?.printed() ?? "";
    return printed.split(message).length - 1;
  }

  /** Whether it answers that it is ready: one of several controllers is ready only while it leads. */
  async isServing(): Promise<boolean> {
    if (this.#part === undefined) return false;
    try {
      // It lets the caller wait for half of the call's time.
      const { ready } = await this.clients.identity.call("Probe", {}, 1_000);
      return ready?.value === true;
    } catch (error) {
      const { code } = error as { readonly code?: status };
      if (code === status.UNAVAILABLE || code === status.DEADLINE_EXCEEDED) return false;
      throw error;
    }
  }

  /** Sends it a signal, such as SIGSTOP. */
  signal(signal: Deno.Signal): void {
    this.#part?.signal(signal);
  }

  /** Resolves with its exit code when it has ended by itself; it can be started again then. */
  async ended(): Promise<number> {
    const code = await this.#part?.ended ?? -1;
    this.#hangUp();
    this.#part = undefined;
    return code;
  }

  /** Resident memory. */
  async residentBytes(): Promise<number> {
    return await this.#part?.residentBytes() ?? NaN;
  }

  /** Sends SIGTERM; returns the problems of its end. */
  async stop(): Promise<readonly string[]> {
    this.#hangUp();
    const part = this.#part;
    this.#part = undefined;
    return await part?.stop() ?? [];
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.#hangUp();
    await this.#part?.kill();
    this.#part = undefined;
  }

  /** The socket of a killed driver exists and does not answer. */
  async #serves(): Promise<boolean> {
    try {
      using _connection = await Deno.connect({ transport: "unix", path: this.socket });
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused) {
        return false;
      }
      throw error;
    }
  }
}

/** The environment of a driver. */
export interface DriverPlace {
  readonly subject: Subject;
  /** For its socket and its files. */
  readonly folder: string;
  readonly logs: string;
  readonly router: Router;
  readonly chart: Chart;
  /** The entries of the Secret as files, for a controller: a pod has them in /etc/rds-csi. */
  readonly credentials?: string;
}

/** The controller of the chart, with its service account, in a pod of that name. */
export async function makeController(
  location: DriverPlace,
  kubeconfig: string,
  pod: string,
): Promise<Driver> {
  const { subject, folder, logs, chart } = location;
  const credentialFates = await fatesOfCredentials(location);
  const profileFates = await fatesOfProfiles(location);
  const ownProfile = join(folder, "router-profile.json");
  const profile = { ...getProfile("ros-7.24"), answers: { grow: "live" } } as const;
  await Deno.writeTextFile(ownProfile, formatProfile(profile));
  const socket = join(folder, `${pod}.sock`);
  const env = envForRig(chart.controller, {
    "metadata.namespace": chart.namespace,
    "metadata.name": pod,
  });
  const { controllerArgs, routerAddress } = chart.options;
  const needsProfile = chart.config === undefined && Object.keys(profileFates).length === 0;
  const profileArgs = needsProfile ? [`--router-profile=${ownProfile}`] : [];
  const more = [`--kubeconfig=${kubeconfig}`, ...profileArgs];
  return new Driver(socket, (metricsAddress) => {
    const controllerFates: Fates = {
      ...kept("mode", "driver-name", "log-level", "rds-address", "rds-port", "rds-user", "base-path"),
      ...kept(
        "nvme-address",
        "nvme-port",
        "kubernetes",
        "leader-election",
        "health-interval",
        "migration-pairs",
        "cluster-id",
      ),
      ...kept(...flagsOf(controllerArgs)),
      ...routerAddress === undefined ? {} : { "rds-address": () => `--rds-address=${routerAddress}` },
      // There is no pod with separate folders for the socket and the Secret.
      "endpoint": () => `--endpoint=unix://${socket}`,
      ...credentialFates,
      ...profileFates,
      // Several drivers are on one machine, which is also used otherwise.
      "metrics-address": () => `--metrics-address=${metricsAddress}`,
    };
    const [command = "", ...args] = argsForRig(chart.controller, controllerFates);
    // They replace what a pod finds in its environment and in the folder of its service account.
    return startPart(subject, command, logs, [...args, ...more], env);
  });
}

async function fatesOfCredentials({ folder, credentials, chart }: DriverPlace): Promise<Fates> {
  if (chart.config !== undefined) {
    const file = join(folder, "config.yaml");
    await Deno.writeTextFile(file, chart.config);
    return { "config": () => `--config=${file}` };
  }
  if (credentials !== undefined) {
    const there = (flag: string) => (path: string) => `--${flag}=${join(credentials, basename(path))}`;
    return { "rds-key": there("rds-key"), "rds-host-key": there("rds-host-key") };
  }
  const passwordFile = join(folder, "password");
  await Deno.writeTextFile(passwordFile, `${routerPassword}\n`, { mode: 0o600 });
  return {
    "rds-password-file": () => `--rds-password-file=${passwordFile}`,
    // The simulator makes a new host key at every start.
    "rds-host-key": () => "--rds-insecure-skip-verify",
  };
}

/** The folder of the chart's profiles, which are in a separate folder in a pod; none if the chart has none. */
async function fatesOfProfiles({ chart, folder }: Pick<DriverPlace, "chart" | "folder">): Promise<Fates> {
  const texts = Object.entries(chart.profiles);
  if (texts.length === 0) return {};
  const profiles = join(folder, "profiles");
  await Deno.mkdir(profiles, { recursive: true });
  for (const [name, text] of texts) await Deno.writeTextFile(join(profiles, name), text);
  const there = (path: string) => join(profiles, basename(path));
  return { "router-profile": (paths) => `--router-profile=${paths.split(",").map(there).join(",")}` };
}

/**
 * The driver of a node as the chart renders it, whose kubelet has this folder and is told of it by the driver itself.
 *
 * @param place where it is, if there are several
 */
export async function makeNodeDriver(
  location: DriverPlace,
  node: string,
  kubelet: string,
  place: string | undefined,
): Promise<Driver> {
  const { subject, logs, router, chart } = location;
  const folder = join(kubelet, "plugins", driverName);
  await Deno.mkdir(folder, { recursive: true });
  const container = chart.nodeAt(place);
  const env = envForRig(container, { "spec.nodeName": node, "status.hostIP": "127.0.0.1" });
  const profileFates = await fatesOfProfiles({ chart, folder });
  // Every node's kubelet has another folder, because all are on one machine.
  const here = (value: string) => value.replace(chart.kubeletPath, kubelet);
  return new Driver(join(folder, "csi.sock"), (metricsAddress) => {
    const nodeFates: Fates = {
      ...kept("mode", "driver-name", "log-level", "register", "max-volumes-per-node", "topology"),
      "endpoint": (value) => `--endpoint=${here(value)}`,
      "kubelet-path": (value) => `--kubelet-path=${here(value)}`,
      "state-dir": (value) => `--state-dir=${here(value)}`,
      "metrics-address": () => `--metrics-address=${metricsAddress}`,
      // All nodes are on one machine, where one could have the page of its own address.
      "status-address": () => "--status-address=127.0.0.1:0",
      ...profileFates,
    };
    const [command = "", ...args] = argsForRig(container, nodeFates);
    // This kernel has no NVMe/TCP.
    const loop = ["--connector=loop", `--loop-backing=${router.backing}`];
    return startPart(subject, command, logs, [...args, ...loop], env);
  });
}
