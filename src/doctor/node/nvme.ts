import { nodeFixes } from "./fixes.ts";
import { isLoadable, isPresent, type ModuleFiles } from "./modules.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { Network, Reach } from "../../host/network.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { type NodeVolume, stagingStateOf } from "./volumes.ts";

const transportName = "nvme-transport";

/** The file through which connections are made. */
const controlPath = "/dev/nvme-fabrics";

/** Checks whether the kernel can reach a target over NVMe/TCP: the module is loaded, or can be loaded. */
export async function checkTransport(files: KernelFiles, modules: ModuleFiles): Promise<Finding> {
  const transport = isPresent(files, "nvme_tcp");
  const fabrics = isPresent(files, "nvme_fabrics") || files.info("/sys/class/nvme-fabrics") !== undefined;
  const control = files.info(controlPath) !== undefined;
  if (transport && control) return fine(transportName, `nvme_tcp is loaded, and ${controlPath} is there`);
  if (fabrics && !control) {
    return problem(
      transportName,
      `the kernel has NVMe over Fabrics, but ${controlPath} is not here: /dev is not the host's`,
      nodeFixes.deviceFolder(),
    );
  }
  if (files.readText("/proc/sys/kernel/modules_disabled") === "1") {
    return problem(
      transportName,
      "nvme_tcp is not loaded, and this kernel no longer loads modules",
      nodeFixes.modulesDisabled(),
    );
  }
  const loadable = await isLoadable(modules, /(?:^|\/)nvme[-_]tcp\.ko/m);
  if (loadable === false) {
    const release = files.readText("/proc/sys/kernel/osrelease") ?? "unknown";
    return problem(
      transportName,
      `nvme_tcp is not loaded, and the running kernel ${release} has no such module`,
      nodeFixes.modulesMissing(),
    );
  }
  if (fabrics) {
    return warning(
      transportName,
      "nvme_tcp is not loaded; the kernel loads it with the first connection if it can",
      nodeFixes.loadTransport(),
    );
  }
  const known = loadable === undefined
    ? "this process cannot see whether it can be loaded"
    : "it can be loaded";
  return problem(transportName, `nvme_tcp is not loaded; ${known}`, nodeFixes.loadTransport());
}

const multipathName = "nvme-multipath";

/** Checks whether the kernel makes one device of several paths. The driver works either way. */
export function checkMultipath(files: KernelFiles): Finding {
  const value = files.readText("/sys/module/nvme_core/parameters/multipath");
  if (value === "Y") return fine(multipathName, "native multipath is on: several addresses make one device");
  if (value === "N") {
    return fine(
      multipathName,
      "native multipath is off: the kernel uses one of several addresses, and does not replace a lost one",
    );
  }
  return skipped(multipathName, "nvme_core is not loaded, or has no multipath");
}

const timeoutsName = "nvme-timeouts";

/** Seconds before the driver gives up a lost connection, unless a StorageClass says otherwise. */
const defaultCtrlLossTmo = 1800;

/** Checks what the kernel does when one of the driver's connections is lost, one finding for all of them. */
export function checkTimeouts(files: KernelFiles, nqnPrefix: string): Finding {
  const controllers = readControllers(files, nqnPrefix);
  if (controllers.length === 0) return fine(timeoutsName, "no connection of this driver");
  const described = controllers.map(({ name, ctrlLossTmo, reconnectDelay, fastIoFailTmo }) =>
    `${name} ctrl_loss_tmo=${ctrlLossTmo} reconnect_delay=${reconnectDelay} fast_io_fail_tmo=${fastIoFailTmo}`
  ).join(", ");
  const short = controllers.filter(({ ctrlLossTmo }) => isShort(ctrlLossTmo));
  if (short.length === 0) return fine(timeoutsName, described);
  return warning(
    timeoutsName,
    `${described}; less than ${defaultCtrlLossTmo} s, or never, is right only if a StorageClass sets it`,
    nodeFixes.shortTimeout(),
  );
}

interface ControllerTimeouts {
  readonly name: string;
  readonly ctrlLossTmo: string;
  readonly reconnectDelay: string;
  readonly fastIoFailTmo: string;
}

/**
 * Whether the timeout is shorter than the default, or `off`, which means never: writers then wait forever for a router
 * that does not come back.
 */
function isShort(ctrlLossTmo: string): boolean {
  return !/^[0-9]+$/.test(ctrlLossTmo) || Number(ctrlLossTmo) < defaultCtrlLossTmo;
}

function readControllers(files: KernelFiles, nqnPrefix: string): readonly ControllerTimeouts[] {
  const folder = "/sys/class/nvme";
  const names = files.list(folder) ?? [];
  const read = (name: string, attribute: string) =>
    files.readText(`${folder}/${name}/${attribute}`)?.trim() ?? "?";
  return names.filter((name) => read(name, "subsysnqn").startsWith(`${nqnPrefix}:`)).toSorted().map((
    name,
  ) => ({
    name,
    ctrlLossTmo: read(name, "ctrl_loss_tmo"),
    reconnectDelay: read(name, "reconnect_delay"),
    fastIoFailTmo: read(name, "fast_io_fail_tmo"),
  }));
}

const targetName = "nvme-target";
const connectMs = 5_000;

/** The targets to check: the given addresses, separated by commas, or else those of this node's volumes. */
export function targetsOf(
  given: { readonly nvmeAddress: string; readonly nvmePort: number },
  volumes: readonly NodeVolume[],
): readonly TargetAddress[] {
  if (given.nvmeAddress !== "") {
    return given.nvmeAddress.split(",").map((address) => ({ address, port: given.nvmePort }));
  }
  const all = volumes.map(stagingStateOf)
    .filter((stagingState) => stagingState !== undefined).flatMap(({ intent: { addresses, port } }) =>
      addresses.map((address) => ({ address, port }))
    );
  return [...new Map(all.map((at) => [`${at.address} ${at.port}`, at])).values()];
}

/** Checks whether each target answers, and offers what this node has staged. */
export async function checkTargets(
  targets: readonly TargetAddress[],
  volumes: readonly NodeVolume[],
  nqnPrefix: string,
  { network, discover }: {
    readonly network: Network;
    /** Returns the NQNs offered to this host; undefined where no target can be asked. */
    readonly discover: (at: TargetAddress) => Promise<readonly string[]>;
  },
): Promise<readonly Finding[]> {
  if (targets.length === 0) {
    return [
      skipped(targetName, "no address is known because nothing is staged here", nodeFixes.targetAddress()),
    ];
  }
  return await Promise.all(targets.map(async (at) => {
    const staged = stagedAt(volumes, at);
    const reach = await network.reach(at.address, at.port, connectMs);
    if (reach.state !== "open") return judgeSilence(at, reach, staged);
    try {
      return judgeOffer(at, reach.ms, await discover(at), staged, nqnPrefix);
    } catch (error) {
      const reason = messageOf(error);
      return problem(targetName, `${describe(at)} answers, but its discovery log cannot be read: ${reason}`);
    }
  }));
}

function stagedAt(volumes: readonly NodeVolume[], { address, port }: TargetAddress): readonly StagingState[] {
  return volumes.map(stagingStateOf).filter((stagingState) => stagingState !== undefined)
    .filter((stagingState) =>
      stagingState.here.staged && stagingState.intent.port === port &&
      stagingState.intent.addresses.includes(address)
    );
}

function describe({ address, port }: TargetAddress): string {
  return `${address} port ${port}`;
}

const silences = {
  refused: "refuses the connection",
  silent: "does not answer",
  unresolved: "has no address",
  failed: "cannot be reached",
} as const;

/** A target without exports does not listen. */
function judgeSilence(
  at: TargetAddress,
  reach: Exclude<Reach, { readonly state: "open" }>,
  staged: readonly StagingState[],
): Finding {
  const found = `${describe(at)} ${silences[reach.state]}: ${reach.reason}`;
  const fix = reach.state === "unresolved" ? nodeFixes.targetAddress() : nodeFixes.targetSilent();
  if (reach.state !== "refused" || staged.length > 0) return problem(targetName, found, fix);
  return warning(targetName, `${found}; the router listens only while it exports a volume`, fix);
}

function judgeOffer(
  at: TargetAddress,
  ms: number,
  offered: readonly string[],
  staged: readonly StagingState[],
  nqnPrefix: string,
): Finding {
  const own = offered.filter((nqn) => parseExportNqn(nqn, nqnPrefix) !== undefined);
  const found = `${describe(at)} answers in ${Math.round(ms)} ms, ` +
    `and offers this host ${own.length} of this driver's exports`;
  const withdrawn = staged.map(({ intent: { nqn } }) => nqn).filter((nqn) => !offered.includes(nqn));
  if (withdrawn.length === 0) return fine(targetName, found);
  return warning(
    targetName,
    `${found}, but not what is staged here: ${withdrawn.join(", ")}`,
    nodeFixes.exportGone(),
  );
}
