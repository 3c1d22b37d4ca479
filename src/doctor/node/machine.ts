import { nodeFixes } from "./fixes.ts";
import { parsePropagation, type Propagation } from "../../filesystem/propagation.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MountEntry } from "../../volume/ports/node_ports.ts";
import type { Processes } from "../../host/processes.ts";
import { allTools, packageOf, type ToolName } from "../../host/tools.ts";
import { VolumeError } from "../../volume/errors.ts";

/** File systems that are empty again after a boot. */
const inMemory: ReadonlySet<string> = new Set(["tmpfs", "ramfs", "devtmpfs"]);

/** The visible mount of a path: the deepest that covers it, and the last one of several there. */
export function coveringMount(table: readonly MountEntry[], path: string): MountEntry | undefined {
  const around = table.filter(({ mountPoint }) =>
    path === mountPoint || path.startsWith(mountPoint === "/" ? "/" : `${mountPoint}/`)
  );
  return around.toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
}

/** Judges whether /dev is the host's, in which the nodes of new devices appear, and accepts new ones. */
export function judgeDev(table: readonly MountEntry[]): Finding {
  const check = "dev";
  const mount = coveringMount(table, "/dev");
  const fix = nodeFixes.deviceFolder();
  if (mount?.mountPoint !== "/dev") {
    return problem(check, "nothing is mounted at /dev: new devices do not appear", fix);
  }
  if (mount.filesystem !== "devtmpfs") {
    return problem(
      check,
      `/dev is a ${mount.filesystem} of the container's own: new devices do not appear`,
      fix,
    );
  }
  if ([...mount.mountOptions, ...mount.superOptions].includes("ro")) {
    return problem(check, "/dev is the host's devtmpfs, but read-only", fix);
  }
  return fine(check, "/dev is the host's devtmpfs, and writable");
}

/** Judges whether the kubelet sees mounts that are made in its folder here. */
export function judgeKubelet(
  { path, exists, table, propagation }: {
    readonly path: string;
    readonly exists: boolean;
    readonly table: readonly MountEntry[];
    /** The result of {@linkcode parsePropagation}. */
    readonly propagation: ReturnType<typeof parsePropagation>;
  },
): Finding {
  const check = "kubelet";
  if (!exists) {
    return problem(
      check,
      `there is no folder ${path}`,
      nodeFixes.kubeletFolder(),
    );
  }
  const mount = coveringMount(table, path);
  const shared: Propagation = mount === undefined ? "private" : propagation.get(mount.mountId) ?? "private";
  const where = `${path} is on the mount ${mount?.mountPoint ?? "/"}, which is ${shared}`;
  if (shared.startsWith("shared")) return fine(check, where);
  return problem(
    check,
    `${where}: mounts made here are not visible outside, so pods would get empty folders`,
    nodeFixes.propagation(),
  );
}

/** Judges whether the node's state survives a boot. */
export function judgeStateFolder(
  { path, state, table }: {
    readonly path: string;
    /** `absent` when there is none yet, or why it cannot be written. */
    readonly state: "writable" | "absent" | { readonly reason: string };
    readonly table: readonly MountEntry[];
  },
): Finding {
  const check = "state-dir";
  const mount = coveringMount(table, path);
  if (mount !== undefined && inMemory.has(mount.filesystem)) {
    return problem(
      check,
      `${path} is on a ${mount.filesystem}: a reboot loses the state of staged volumes`,
      nodeFixes.stateInMemory(),
    );
  }
  if (typeof state === "object") {
    return problem(
      check,
      `${path} cannot be written: ${state.reason}`,
      nodeFixes.stateReadOnly(),
    );
  }
  const disk = mount === undefined ? "" : ` (${mount.filesystem} on ${mount.mountPoint})`;
  if (state === "absent") {
    return warning(
      check,
      `${path} does not exist yet${disk}`,
      nodeFixes.stateAbsent(),
    );
  }
  return fine(check, `${path} is writable and survives a boot${disk}`);
}

const check = "tools";
const versionMs = 10_000;

/** The arguments that print the version of a tool, or of all tools of a package, if not `-V`. */
const versionArguments: Readonly<Record<string, readonly string[]>> = {
  nvme: ["version"],
  coreutils: ["--version"],
  dmsetup: ["--version"],
  btrfs: ["--version"],
  // It has no such flag; without arguments it prints its version and its usage.
  resize2fs: [],
};

/** Tools that only one connector, or only one kind of volume, uses. */
const onlyFor: Readonly<Record<string, string>> = {
  losetup: "loop",
  nvme: "nvme-tcp",
  dmsetup: "nvme-tcp",
  "mount.nfs4": "directory",
};

/** What a node needs tools for. */
export interface ToolUse {
  readonly connector: string;
  readonly kind: "block" | "directory";
  /** Whether this may be a person's shell on the host, beside the driver's image, which has the tools. */
  readonly besideImage: boolean;
}

/**
 * Checks whether every tool that the connector's node runs is installed, and which version: one finding for each
 * package.
 */
export async function checkTools(
  processes: Processes,
  { connector, kind, besideImage }: ToolUse,
  context: CallContext,
): Promise<readonly Finding[]> {
  const use = kind === "directory" ? kind : connector;
  const wanted = allTools.filter((tool) => [undefined, use].includes(onlyFor[tool]));
  const reads = await Promise.all(wanted.map((tool) => reading(tool, processes, context)));
  return [...Map.groupBy(reads, ({ tool }) => packageOf(tool))].map(([name, ofPackage]) =>
    judge(name, ofPackage, besideImage)
  );
}

interface Look {
  readonly tool: ToolName;
  readonly state: "there" | "missing" | "unclear";
  /** The version, or why it is unknown. */
  readonly said: string;
}

async function reading(tool: ToolName, processes: Processes, context: CallContext): Promise<Look> {
  const args = versionArguments[tool] ?? versionArguments[packageOf(tool)] ?? ["-V"];
  try {
    const { stdout, stderr } = await processes.run(tool, {
      args,
      signal: context.signal,
      subject: `version of ${tool}`,
      timeoutMs: versionMs,
    });
    const version = /\b[0-9]+\.[0-9]+(?:\.[0-9]+)*(?:[-.a-z0-9]*)/i.exec(`${stdout}\n${stderr}`)?.[0];
    return version === undefined
      ? { tool, state: "unclear", said: "it prints no version" }
      : { tool, state: "there", said: version };
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    const state = error.kind === "precondition" ? "missing" : "unclear";
    return { tool, state, said: error.message };
  }
}

function judge(name: string, reads: readonly Look[], besideImage: boolean): Finding {
  const named = (state: Look["state"]) => reads.filter((reading) => reading.state === state);
  const missing = named("missing").map(({ tool }) => tool);
  if (missing.length > 0 && besideImage) {
    return skipped(
      check,
      `${missing.join(", ")} of ${name} not installed on this host; the driver's image has it`,
    );
  }
  if (missing.length > 0) {
    return problem(
      check,
      `${missing.join(", ")} of ${name} not installed, or not where this executable may run it`,
      nodeFixes.toolMissing(name),
    );
  }
  const unclear = named("unclear").map(({ tool, said }) => `${tool} (${said})`);
  if (unclear.length > 0) {
    return warning(check, `${name}: ${unclear.join(", ")}`, nodeFixes.toolUnclear(name));
  }
  const versions = [...new Set(reads.map(({ said }) => said))].join(", ");
  return fine(check, `${name} ${versions}: ${reads.map(({ tool }) => tool).join(", ")}`);
}
