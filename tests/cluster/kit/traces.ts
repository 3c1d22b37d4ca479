import { join } from "node:path";
import { findLeftovers, removeLeftovers } from "../../sanity/leftovers.ts";
import { pause } from "./waiting.ts";

const controlGroups = "/sys/fs/cgroup";
/** The folder of the sockets of containerd's helpers, whatever containerd's own folder. */
const shimFolder = "/run/containerd/s";
/** The folder in which a kubelet makes links to pods' logs. */
const logLinks = "/var/log/containers";
/** How long processes may take to disappear after SIGKILL, in milliseconds. */
const killMs = 5_000;

/** The control group of containerd's containers. */
const groupName = "k8s.io";

/**
 * The traces of a cluster on this machine besides files in its folder, as lines for people.
 *
 * @param folder the folder of the whole cluster, whose path is in the command lines of all its processes
 */
export async function findTraces(folder: string): Promise<readonly string[]> {
  const { mounts, loops } = await findLeftovers(folder);
  return [
    ...(await processesOf(folder)).map((pid) => `process ${pid}`),
    ...mounts.map((path) => `mount ${path}`),
    ...loops.map((device) => `loop device ${device}`),
    ...deadGroups().map((path) => `control group ${path}`),
    ...(await deadSockets()).map((path) => `socket ${path}`),
    ...linksInto(folder).map((path) => `link ${path}`),
  ];
}

/** Removes all traces, the processes first. */
export async function removeTraces(folder: string): Promise<void> {
  await killProcesses(folder);
  await removeLeftovers(folder);
  // A loop device on another one releases it a moment later.
  if ((await removeLeftovers(folder)).loops.length > 0) await pause(500);
  for (const path of deadGroups()) removeGroup(path);
  for (const path of [...await deadSockets(), ...linksInto(folder)]) await Deno.remove(path);
  for (
    const path of [shimFolder, "/run/containerd/io.containerd.runtime.v2.task", "/run/containerd", logLinks]
  ) {
    removeIfEmpty(path);
  }
}

/** Ends processes with the folder in their command line, and their children in containers, which do not have it. */
export async function killProcesses(folder: string): Promise<void> {
  const until = performance.now() + killMs;
  for (;;) {
    const pids = await processesOf(folder);
    if (pids.length === 0 || performance.now() > until) return;
    for (const pid of pids) killOne(pid);
    await pause(50);
  }
}

function killOne(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Processes whose command line names something in the folder, and their descendants, without dead ones. */
async function processesOf(folder: string): Promise<number[]> {
  const parents = new Map<number, number>();
  const named = new Set<number>();
  for (const { name } of Deno.readDirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === Deno.pid) continue;
    try {
      const [, state, parent] = /\) (\S) (\d+) /.exec(await Deno.readTextFile(`/proc/${name}/stat`)) ?? [];
      if (state === "Z" || state === "X") continue;
      parents.set(pid, Number(parent));
      const text = (await Deno.readTextFile(`/proc/${name}/cmdline`)).split("\0");
      if (text.some((word) => word.includes(`${folder}/`))) named.add(pid);
    } catch (error) {
      if (!hasGone(error)) throw error;
    }
  }
  return [...parents.keys()].filter((pid) => isBelow(pid, named, parents));
}

function isBelow(pid: number, named: ReadonlySet<number>, parents: ReadonlyMap<number, number>): boolean {
  for (let at: number | undefined = pid; at !== undefined; at = parents.get(at)) {
    if (named.has(at)) return true;
  }
  return false;
}

/** A process that ends meanwhile: its files are gone, or cannot be read any more. */
function hasGone(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || /os error 3\b/.test(String(error));
}

/** Control groups of containers without processes, in one hierarchy or in several. */
function deadGroups(): string[] {
  return [controlGroups, ...foldersIn(controlGroups)].map((root) => join(root, groupName))
    .filter((path) => isFolder(path) && isDead(path));
}

function isDead(group: string): boolean {
  return Deno.readTextFileSync(join(group, "cgroup.procs")) === "" && foldersIn(group).every(isDead);
}

function removeGroup(path: string): void {
  for (const inner of foldersIn(path)) removeGroup(inner);
  // A control group's files disappear with it.
  Deno.removeSync(path);
}

/** Sockets of containerd's helpers that do not answer. */
async function deadSockets(): Promise<string[]> {
  const dead: string[] = [];
  for (const path of filesIn(shimFolder)) {
    try {
      using _connection = await Deno.connect({ transport: "unix", path });
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionRefused) dead.push(path);
      else if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return dead;
}

function linksInto(folder: string): string[] {
  return filesIn(logLinks).filter((path) => {
    try {
      return Deno.readLinkSync(path).startsWith(`${folder}/`);
    } catch (error) {
      if (error instanceof Deno.errors.InvalidData || error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  });
}

function removeIfEmpty(path: string): void {
  if (isFolder(path) && [...Deno.readDirSync(path)].length === 0) Deno.removeSync(path);
}

function filesIn(folder: string): string[] {
  return isFolder(folder)
    ? [...Deno.readDirSync(folder)].filter((entry) => !entry.isDirectory).map(({ name }) =>
      join(folder, name)
    )
    : [];
}

function foldersIn(folder: string): string[] {
  return isFolder(folder)
    ? [...Deno.readDirSync(folder)].filter((entry) => entry.isDirectory).map(({ name }) => join(folder, name))
    : [];
}

function isFolder(path: string): boolean {
  try {
    return Deno.lstatSync(path).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
