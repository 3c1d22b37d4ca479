// Runs the suites of tests/cluster: `deno run -A tests/cluster/run.ts [--no-skips] [NAME…]`.

import { join } from "node:path";
import { complain, print } from "../../tools/print.ts";
import { findProgram, goIsHere, isFile, isThere } from "../../tools/host_command.ts";
import { binary } from "../support/parts.ts";
import { main } from "../support/suites.ts";
import { Bench } from "./kit/bench.ts";
import { restoreSettings } from "./kit/kernel_settings.ts";
import { ensureTools } from "./kit/tools.ts";
import { findTraces, removeTraces } from "./kit/traces.ts";
import { defaultSuites, suites } from "./suites.ts";

/** Below it every suite has a folder of its own: short, as paths of sockets are. */
const scratch = "/tmp";
const prefix = "rds-csi-cluster-";

/** Nothing is ever deleted through a mount: then the folder stays, for a person to look at. */
async function removeFolder(folder: string): Promise<void> {
  const traces = await findTraces(folder);
  if (traces.length === 0) return await Deno.remove(folder, { recursive: true });
  complain(`left for a person to look at: ${folder}: ${traces.join(", ")}`);
}

/** Takes away what a run has left that was killed: it could not do so itself. */
async function sweep(): Promise<void> {
  for (const { name } of [...Deno.readDirSync(scratch)].filter((entry) => entry.name.startsWith(prefix))) {
    const folder = join(scratch, name);
    if (isFile(join(folder, "owner")) && !isRunning(await Deno.readTextFile(join(folder, "owner")))) {
      print(`an earlier run has left ${folder}, which is taken away`);
      await removeTraces(folder);
      await restoreSettings(folder);
      await removeFolder(folder);
    }
  }
}

/** Whether the process that owns a folder is still there, and still runs this file. */
function isRunning(pid: string): boolean {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes("tests/cluster/run.ts");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** A program and the Debian package that brings it. */
type Need = readonly [program: string, debianPackage: string];

const needs: readonly Need[] = [
  ["busybox", "busybox-static"],
  ["openssl", "openssl"],
  ["ssh-keyscan", "openssh-client"],
  ["bash", "bash"],
  ["apt-get", "apt"],
  ["dpkg-deb", "dpkg"],
  ["tar", "tar"],
  ["nice", "coreutils"],
  ["setpriv", "util-linux"],
  ["nsenter", "util-linux"],
  ["ip", "iproute2"],
  ["mount", "mount"],
  ["losetup", "mount"],
  ["mkfs.btrfs", "btrfs-progs"],
  ["mkfs.ext4", "e2fsprogs"],
  ["mkfs.xfs", "xfsprogs"],
];

/** File systems that the kernel has to know: of pods, of the router's pool, of volumes. */
const filesystems = ["overlay", "btrfs", "ext4", "xfs"];

/** Why no cluster can run here, in words; undefined when one can. */
function hindrance(): string | undefined {
  if (Deno.build.os !== "linux") return "a cluster needs Linux";
  if (Deno.uid() !== 0) return "a cluster needs root, for mounts and containers";
  if (!isThere("/dev/loop-control")) return "a cluster needs loop devices (/dev/loop-control)";
  const known = Deno.readTextFileSync("/proc/filesystems").split(/\s+/);
  const unknown = filesystems.filter((name) => !known.includes(name));
  if (unknown.length > 0) return `a cluster needs a kernel with ${unknown.join(", ")}`;
  if (
    !/ \/sys\/fs\/cgroup(\/\S+)? rw\S* .*- cgroup2? /m.test(Deno.readTextFileSync("/proc/self/mountinfo"))
  ) {
    return "a cluster needs control groups that can be written to, at /sys/fs/cgroup";
  }
  const missing = needs.filter(([program]) => findProgram(program) === undefined).map(([, name]) => name);
  if (missing.length > 0) {
    return `a cluster needs packages that are not installed: ${[...new Set(missing)].join(" ")}`;
  }
  return goIsHere() ? undefined : "Go, which builds the cluster's programs, is not here";
}

if (import.meta.main) {
  await main({
    kind: "cluster",
    all: suites,
    byDefault: defaultSuites,
    whySkipped: hindrance,
    async prepare(stop) {
      await sweep();
      const subject = isFile(binary) ? "binary" : "sources";
      print(`what runs is the driver's ${subject}`);
      const means = { tools: await ensureTools(print, stop), subject } as const;
      return async (name, signal) => {
        const folder = await Deno.makeTempDir({ dir: scratch, prefix });
        await Deno.writeTextFile(join(folder, "owner"), `${Deno.pid}`);
        return new Bench(name, folder, means, signal, () => removeFolder(folder));
      };
    },
  });
}
