import { join } from "node:path";
import { Router as HostRouter, type RouterDoor } from "../../cluster/kit/router.ts";
import { binary, freePort } from "../../support/parts.ts";
import { controlPort, type Router as GuestRouter, sshPort, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { hostOutput, isFile } from "../../../tools/host_command.ts";
import { serveNfs } from "../kit/nfs_server.ts";
import type { Bench } from "../kit/suite.ts";
import { hostAddress } from "./network.ts";
import { machineSeconds } from "./node.ts";

/** The user that the chart's values name by default. */
const userName = "rds-csi";

/** The port of NVMe/TCP, unless the router is on the host, where it may be taken. */
export const defaultNvmePort = 4420;

/** How the router differs from what a driver assumes without a probe; the chart gets it as the router's profile. */
export const answers = {
  grow: "live",
  unexport: 0,
} as const;

const behaviours = Object.entries(answers).flatMap(([name, value]) => ["--behaviour", `${name}=${value}`]);

/** A simulated router of machines, on the host or in a guest. */
export interface MachineRouter {
  /** Where machines and their pods reach it. */
  readonly address: string;
  readonly sshPort: number;
  readonly nvmePort: number;
  /** The port of the host's 127.0.0.1 at which its SSH answers. */
  readonly sshPortOfHost: number;
  /** The folder with its volumes' files, where {@linkcode MachineRouter.sh} runs. */
  readonly backing: string;
  /** Asks its control port, as `/state`. */
  control<T>(path: string, init?: RequestInit): Promise<T>;
  /** What its kernel serves over NVMe/TCP, a line each; "" where the simulator itself serves. */
  servedByKernel(): Promise<string>;
  /** Its client's violations. */
  violations(): Promise<readonly unknown[]>;
  /** Runs a shell script where its volumes' files are, with arguments, and answers what it printed. */
  sh(script: string, ...args: readonly string[]): Promise<string>;
  /** Ends it; answers what was wrong with its end. */
  stop(): Promise<readonly string[]>;
}

/** Makes the router of a cluster. @param key path of the public key with which its user may log in */
export type MakeRouter = (bench: Bench, folder: string, key: string) => Promise<MachineRouter>;

/** A router on the host, which serves NVMe/TCP itself, at ports that are free. */
export const routerOnHost: MakeRouter = (bench, folder, key) => {
  const user = ["--user", userName, "--authorized-key", key];
  const pool = "storage-pool:4T:btrfs";
  const door = { address: "127.0.0.1", sshPort: freePort(), nvmePort: freePort(), pool, user };
  return routerAtDoor(bench, folder, { ...door, flags: behaviours }, hostAddress);
};

/** A router on the host behind a door. @param address where machines reach it */
export async function routerAtDoor(
  bench: Bench,
  folder: string,
  door: RouterDoor & { readonly nvmePort: number },
  address = door.address,
): Promise<MachineRouter> {
  const subject = isFile(binary) ? "binary" : "sources";
  const router = await HostRouter.start(subject, folder, join(folder, "log"), bench.signal, door);
  return {
    address,
    sshPort: router.sshPort,
    nvmePort: door.nvmePort,
    sshPortOfHost: router.sshPort,
    backing: router.backing,
    control: (path, init) => router.control(path, init),
    servedByKernel: () => Promise.resolve(""),
    violations: () => router.violations(),
    sh: (script, ...args) => hostOutput("sh", ["-ec", script, "sh", ...args]),
    stop: () => router.stop(),
  };
}

/** The name of the disk with the volumes' files, of a guest that becomes a router. */
const poolName = "pool";

/** How a guest is started that becomes a router; the machines are in its network. */
export const routerGuestOptions = {
  memoryMiB: 1024,
  cpus: 1,
  ports: [controlPort, sshPort],
  disks: [{ name: poolName, sizeBytes: 8 * 2 ** 30 }],
  limitSeconds: machineSeconds,
} as const;

/** The pool of a router in a guest that is shared over NFS. */
export const sharedPool = "share";

/** A router in a guest, whose kernel serves NVMe/TCP and NFS. */
export function routerInGuest(guest: Guest): MakeRouter {
  return async (_bench, _folder, key) => {
    const keyInGuest = "/tmp/authorized-key";
    await guest.write(keyInGuest, await Deno.readTextFile(key));
    const router: GuestRouter = await startRouter(guest, {
      disk: guest.disk(poolName),
      filesystem: "btrfs",
      // The last user of several counts.
      flags: [
        "--user",
        userName,
        "--authorized-key",
        keyInGuest,
        "--pool",
        "storage-pool:4T:btrfs",
        "--pool",
        `${sharedPool}:64G:xfs:nfs`,
        ...behaviours,
      ],
    });
    // The router's files are what clients see.
    await serveNfs(guest, [`${router.backing}/files *(rw,no_root_squash,fsid=0,no_subtree_check,insecure)`]);
    return {
      address: router.address,
      sshPort,
      nvmePort: defaultNvmePort,
      sshPortOfHost: guest.forwarded(sshPort),
      backing: router.backing,
      control: async <T>(path: string, init?: RequestInit) => await router.control(path, init) as T,
      servedByKernel: () => guest.sh("ls /sys/kernel/config/nvmet/subsystems"),
      violations: () => router.violations(),
      sh: (script, ...args) => {
        const words = args.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
        return guest.sh(`set -e -- ${words}\n${script}`);
      },
      stop: async () => {
        await router.service.stop();
        return [];
      },
    };
  };
}
