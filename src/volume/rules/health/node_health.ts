import type { HealthProblem, HealthStatus } from "../../model/health/health.ts";
import type { Connection, FoundDevice, MountEntry } from "../../ports/node_ports.ts";
import type { Here, StagingState } from "../../model/staging/state.ts";
import { usedBytes } from "../../model/staging/intent.ts";

/** What a path shows of a volume's device. */
export type Shown =
  | { readonly state: "nothing" }
  /** Without a number when it is no device at all. */
  | { readonly state: "device"; readonly deviceNumber: string | undefined }
  /** It could not be read in time. */
  | { readonly state: "silent"; readonly reason: string };

/** One read of a volume that has a staging state on this node. */
export interface NodeReading {
  readonly stagingState: StagingState;
  /** The paths to its subsystem, in any state. */
  readonly connections: readonly Connection[];
  readonly device: FoundDevice | undefined;
  /** Whether a map lets writes wait while there is no device. @default {false} */
  readonly waits?: boolean;
  /** The device under the volume's NQN that is not below its waiting map; undefined when there is none. */
  readonly returned?: FoundDevice | undefined;
  /** How the device differs from the volume, for people; undefined when it is proven. */
  readonly mismatch: string | undefined;
  /** The visible mount at the staging path; always undefined for a block volume. */
  readonly mount: MountEntry | undefined;
  /** Why the file system at the staging path does not answer; undefined when it does or there is none. */
  readonly silence: string | undefined;
  /** How many errors the kernel has found in the file system; undefined where it counts none. */
  readonly errors?: number | undefined;
  /** Whether the device answers a read with an error; undefined when that is not known. */
  readonly refusesReads?: boolean | undefined;
  /** Devices that the node's kernel has made on top of the device, see `BlockDevices.layers()`. */
  readonly layers: readonly string[];
  readonly targets: readonly { readonly targetPath: string; readonly shown: Shown }[];
}

/** Judges a volume as this node sees it. It only reports: an operation on a device proves it again. */
export function judgeNodeHealth(reading: NodeReading): HealthProblem[] {
  if (reading.stagingState.here.staged) {
    return [
      ...connectionProblems(reading),
      ...deviceProblems(reading),
      ...layerProblems(reading),
      ...filesystemProblems(reading),
      ...targetProblems(reading),
    ];
  }
  const message = "staging is not finished on this node, or unstaging has begun";
  const found = reading.device === undefined ? [] : deviceProblems(reading);
  return [problem("INACCESSIBLE", "NotStaged", message), ...found];
}

function connectionProblems({ stagingState, connections }: NodeReading): HealthProblem[] {
  if (connections.length === 0) {
    return [
      problem("INACCESSIBLE", "NotConnected", `the volume is not connected: nqn=${stagingState.intent.nqn}`),
    ];
  }
  const live = connections.filter(({ state }) => state === "live");
  const paths = connections.map((path) => `${path.address}:${path.port} ${path.stateName}`).join(", ");
  if (live.length === 0) {
    const message = `no path to the volume is live, so that its I/O waits: paths=${paths}`;
    return [problem("INACCESSIBLE", "ConnectionLost", message)];
  }
  // A connector without addresses has only one path.
  const ways = new Set(live.map(({ address, port }) => `${address}:${port}`));
  const expected = live.every(({ address }) => address === "") ? 1 : stagingState.intent.addresses.length;
  if (ways.size >= expected) return [];
  const message = `fewer paths are live than there are addresses: live=${ways.size} of=${expected} ` +
    `paths=${paths}`;
  return [problem("DEGRADED", "PathLost", message)];
}

function deviceProblems(
  { stagingState, connections, device, waits, returned, mismatch }: NodeReading,
): HealthProblem[] {
  if (device === undefined && waits === true) {
    const why = returned === undefined
      ? "the volume's device is away, and writes wait for it:"
      : "a device is back that is not proven to be the volume, and writes wait; the log of the node service " +
        `says why: device=${returned.path} size=${returned.sizeBytes} volume=${stagingState.intent.namespaceBytes}`;
    return [problem("INACCESSIBLE", "DeviceWaiting", `${why} nqn=${stagingState.intent.nqn}`)];
  }
  if (device === undefined) {
    // Without a connection there can be no device, and the missing connection is reported already.
    if (connections.length === 0) return [];
    return [
      problem(
        "INACCESSIBLE",
        "DeviceMissing",
        `the volume is connected, but has no device: nqn=${stagingState.intent.nqn}; if the router restarted, delete the ` +
          "pods that use the volume",
      ),
    ];
  }
  const { path, sizeBytes, deviceNumber } = device;
  if (sizeBytes === 0n) {
    return [problem("INACCESSIBLE", "DeviceEmpty", `the device has lost its size: device=${path}`)];
  }
  const leastBytes = usedBytes(stagingState.intent);
  if (sizeBytes < leastBytes) {
    const message =
      `the device is smaller than the volume: device=${path} size=${sizeBytes} volume=${leastBytes}`;
    return [problem("DATA_LOSS", "DeviceTooSmall", message)];
  }
  const staged = stagingState.here.device?.deviceNumber;
  const different = mismatch ??
    (stagingState.here.staged && deviceNumber !== staged
      ? `staged as=${staged} is=${deviceNumber}`
      : undefined);
  if (different === undefined) return [];
  const message = `the device is not the one that was staged: device=${path} ${different}`;
  return [problem("INACCESSIBLE", "DeviceMismatch", message)];
}

/** The workload's data looks like LVM or md, and the node has begun to use it: both write to one device. */
function layerProblems({ layers, device }: NodeReading): HealthProblem[] {
  if (layers.length === 0) return [];
  const message = `this node itself uses the device by what is written in it: device=${device?.path} ` +
    `used by=${layers.join(", ")}`;
  return [problem("DEGRADED", "UsedByNode", message)];
}

function filesystemProblems(reading: NodeReading): HealthProblem[] {
  const { stagingState, mount, silence } = reading;
  if (stagingState.intent.kind === "block") return [];
  const at = `path=${stagingState.intent.stagingPath}`;
  if (mount === undefined) {
    return [
      problem("INACCESSIBLE", "NotMounted", `the file system is not mounted where it is staged: ${at}`),
    ];
  }
  if (
    mount.deviceNumber !== stagingState.here.device?.deviceNumber ||
    mount.filesystem !== stagingState.intent.kind
  ) {
    const found = `device=${mount.deviceNumber} type=${mount.filesystem}`;
    return [
      problem(
        "INACCESSIBLE",
        "ForeignMount",
        `something else is mounted at the staging path: ${at} ${found}`,
      ),
    ];
  }
  return [
    ...silence === undefined
      ? []
      : [problem("INACCESSIBLE", "FilesystemSilent", `the file system does not answer: ${at} ${silence}`)],
    ...errorProblems(reading, writabilityProblems(stagingState, mount)),
    ...growthProblems(stagingState.here),
  ];
}

/** Errors after which the kernel lets the file system go on, and so the mount table shows nothing. */
function errorProblems(
  { stagingState, device, errors = 0, refusesReads, silence }: NodeReading,
  shown: readonly HealthProblem[],
): readonly HealthProblem[] {
  if (shown.length > 0 || silence !== undefined) return shown;
  const at = `path=${stagingState.intent.stagingPath} device=${device?.path}`;
  const unreadable = `the device answers reads with errors, while its file system goes on: ${at}`;
  const found = `the kernel has found errors in the file system since its last check: errors=${errors} ${at}`;
  return [
    ...refusesReads === true ? [problem("INACCESSIBLE", "DeviceUnreadable", unreadable)] : [],
    ...errors > 0 ? [problem("DEGRADED", "FilesystemErrors", found)] : [],
  ];
}

/** What the stage has found of the size of the file system. */
export function growthProblems({ notGrown }: Here): HealthProblem[] {
  if (notGrown === undefined) return [];
  const message = `the file system is smaller than its volume, because it could not be grown: ${notGrown}`;
  return [problem("DEGRADED", "NotGrown", message)];
}

function writabilityProblems(
  stagingState: StagingState,
  { superOptions, mountOptions }: MountEntry,
): HealthProblem[] {
  const at = `path=${stagingState.intent.stagingPath}`;
  if (superOptions.includes("shutdown")) {
    return [
      problem(
        "INACCESSIBLE",
        "FilesystemShutDown",
        `the kernel shut the file system down after errors: ${at}`,
      ),
    ];
  }
  const readOnly = superOptions.includes("ro") || superOptions.includes("emergency_ro") ||
    mountOptions.includes("ro");
  if (readOnly === stagingState.intent.readOnly) return [];
  return [
    readOnly
      ? problem(
        "DEGRADED",
        "FilesystemReadOnly",
        `the kernel turned the file system read-only after errors: ${at}`,
      )
      : problem("DEGRADED", "FilesystemWritable", `the file system is writable and should not be: ${at}`),
  ];
}

/**
 * Returns one problem for each kind, because two problems of a volume may not have the same reason (CSI specification,
 * VolumeHealthEntry).
 */
function targetProblems({ stagingState, targets }: NodeReading): HealthProblem[] {
  const own = stagingState.here.device?.deviceNumber;
  const missing = targets.filter(({ shown }) => shown.state === "nothing").map(({ targetPath }) =>
    targetPath
  );
  const foreign = targets.flatMap(({ targetPath, shown }) =>
    shown.state === "device" && shown.deviceNumber !== own
      ? [`${targetPath} (device ${shown.deviceNumber ?? "none"})`]
      : []
  );
  const silent = targets.flatMap(({ targetPath, shown }) =>
    shown.state === "silent" ? [`${targetPath} (${shown.reason})`] : []
  );
  return [
    ...gathered("TargetMissing", "nothing is mounted at a path where the volume was published", missing),
    ...gathered("TargetMismatch", "another device is mounted at the volume's target", foreign),
    ...gathered("TargetSilent", "the target cannot be looked at", silent),
  ];
}

function gathered(reason: string, message: string, paths: readonly string[]): HealthProblem[] {
  if (paths.length === 0) return [];
  return [problem("INACCESSIBLE", reason, `${message}: path=${paths.join(", ")}`)];
}

function problem(status: HealthStatus, reason: string, message: string): HealthProblem {
  return { status, reason, message };
}
