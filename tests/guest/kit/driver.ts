import { type CsiClients, dial } from "../../../src/csi/server/client.ts";
import { loadCsi } from "../../../src/csi/server/proto.ts";
import { systemClock } from "../../../src/host/clock.ts";
import type { Guest } from "./guest.ts";
import { GuestService, type ServiceOptions } from "./service.ts";

/**
 * The guest's port through which the host reaches the driver's socket; one of the `ports` with which a guest is
 * started.
 */
export const csiPort = 9000;
/** The guest's port through which the host reaches the simulator's control server; likewise. */
export const controlPort = 8900;
/** The guest's port through which the host reaches the simulator as a router; likewise. */
export const sshPort = 2222;
/** The ports of the driver's socket and of the control server. */
export const driverPorts: readonly number[] = [csiPort, controlPort];

/** The user of the simulated router. */
export const routerUser = "csi";
/** The user's password. */
export const routerPassword = "guest";
/** Below /tmp, where the executable may write. */
const backing = "/tmp/router";
const configfs = "/tmp/configfs";

/** The driver's socket in the guest. */
export const csiSocket = "/run/rds-csi/csi.sock";

/** Options of {@linkcode startRouter}. */
export interface RouterOptions extends ServiceOptions {
  /** A disk for the volumes' files; without one they are in memory. An empty disk gets a file system. */
  readonly disk?: string;
  /**
   * The file system of an empty disk. On Btrfs snapshots and clones share blocks. On ext4 they are copies, and copying
   * a volume takes minutes in software emulation.
   *
   * @default {"ext4"}
   */
  readonly filesystem?: "ext4" | "btrfs";
  /** More flags of `rds-csi simulator`. */
  readonly flags?: readonly string[];
}

/** A simulated router in a guest, whose disks the guest's kernel exports. */
export class Router {
  readonly service: GuestService;
  readonly address: string;
  readonly #guest: Guest;

  constructor(guest: Guest, service: GuestService, address: string) {
    this.#guest = guest;
    this.service = service;
    this.address = address;
  }

  /** The folder of volumes' images in the guest. */
  get backing(): string {
    return backing;
  }

  /**
   * Sends a request to the control server, such as `/state` and `/violations`; the guest has to forward {@linkcode
   * controlPort}.
   */
  async control(path: string, init: RequestInit = {}): Promise<unknown> {
    const url = `http://127.0.0.1:${this.#guest.forwarded(controlPort)}${path}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(60_000), ...init });
    const text = await response.text();
    if (!response.ok) throw new Error(`The simulator answers ${path} with ${response.status}: ${text}`);
    return text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text;
  }

  /** The client's violations. */
  async violations(): Promise<readonly unknown[]> {
    return await this.control("/violations") as readonly unknown[];
  }
}

/** Starts `rds-csi simulator` with the exporter nvmet, and waits until it serves. */
export async function startRouter(guest: Guest, options: RouterOptions = {}): Promise<Router> {
  const { address } = guest;
  const { disk = "", filesystem = "ext4" } = options;
  await guest.sh(
    `set -e
    mkdir -p ${backing} ${configfs}
    mountpoint -q ${configfs} || mount -t configfs configfs ${configfs}
    [ -z "$disk" ] || mountpoint -q ${backing} || { blkid -p "$disk" > /tmp/found || mkfs.$filesystem -q "$disk"; mount "$disk" ${backing}; }`,
    { env: { disk, filesystem } },
  );
  const service = await GuestService.start(guest, "simulator", [
    ...[
      "--listen",
      "0.0.0.0",
      "--ssh-port",
      `${sshPort}`,
      "--control-listen",
      "0.0.0.0",
      "--control-port",
      `${controlPort}`,
    ],
    ...[
      "--backing",
      backing,
      "--exporter",
      "nvmet",
      "--nvmet-folder",
      `${configfs}/nvmet`,
      "--nvme-listen",
      address,
    ],
    ...["--timing-scale", "0", "--user", routerUser, "--password", routerPassword, ...options.flags ?? []],
  ], options);
  await service.ready((lines) => lines.some((line) => line.startsWith('{"ready":true')));
  return new Router(guest, service, address);
}

/** Options of {@linkcode startDriver}. */
export interface DriverOptions extends ServiceOptions {
  /** @default {"all"} */
  readonly mode?: "all" | "node";
  /** @default {"node-1"} */
  readonly nodeId?: string;
  /** More flags of `rds-csi serve`; the last of several counts. */
  readonly flags?: readonly string[];
}

/** The driver in a guest: controller, node, or both, and clients of it. */
export class Driver {
  readonly service: GuestService;
  readonly clients: CsiClients;

  constructor(service: GuestService, clients: CsiClients) {
    this.service = service;
    this.clients = clients;
  }

  /** Sends SIGTERM; throws when it does not end properly. */
  async stop(): Promise<void> {
    this.clients.close();
    await this.service.stop();
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.clients.close();
    await this.service.killAlone();
  }
}

/**
 * Starts `rds-csi serve` with the connector nvme-tcp, and waits until it serves. The guest has to forward {@linkcode
 * csiPort}.
 */
export async function startDriver(guest: Guest, options: DriverOptions = {}): Promise<Driver> {
  const { mode = "all", nodeId = "node-1" } = options;
  await guest.sh(
    `mkdir -p /run/rds-csi /etc/rds-csi /var/lib/kubelet && rm -f ${csiSocket} && printf %s ${routerPassword} > /etc/rds-csi/password`,
  );
  const service = await GuestService.start(guest, "serve", [
    ...["--mode", mode, "--endpoint", `unix://${csiSocket}`, "--node-id", nodeId, "--connector", "nvme-tcp"],
    ...mode === "node" ? [] : controllerFlags(nodeId),
    ...options.flags ?? [],
  ], options);
  await service.ready((lines) => lines.some((line) => line.includes('"serving"')));
  await guest.sh(
    `ss -Hltn "sport = :${csiPort}" | grep -q . ||
      socat TCP-LISTEN:${csiPort},bind=10.0.2.15,fork,reuseaddr UNIX-CONNECT:${csiSocket} > /dev/null 2>&1 < /dev/null &
    until ss -Hltn "sport = :${csiPort}" | grep -q .; do sleep 0.1; done`,
  );
  return new Driver(service, dial(loadCsi(), `tcp://127.0.0.1:${guest.forwarded(csiPort)}`, systemClock));
}

function controllerFlags(nodeId: string): string[] {
  return [
    ...["--rds-address", "127.0.0.1", "--rds-port", `${sshPort}`, "--rds-user", routerUser],
    // The simulator makes a new host key at every start.
    ...["--rds-password-file", "/etc/rds-csi/password", "--rds-insecure-skip-verify"],
    ...["--base-path", "/storage-pool/metal-csi", "--nvme-address", "127.0.0.1", "--cluster-id", "guest"],
    ...["--known-node", nodeId, "--unexport-grace", "0s"],
  ];
}
