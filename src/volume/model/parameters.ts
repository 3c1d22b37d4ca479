import { digest } from "./digest.ts";
import { VolumeError } from "../errors.ts";

/** What a StorageClass may leave to the controller's settings. */
export interface ParameterDefaults {
  readonly backend: string;
  /** Folders that volumes may lie in; the first is the default. */
  readonly basePaths: readonly string[];
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  readonly nqnPrefix: string;
  /** The router that this controller manages, which a StorageClass of the legacy driver may repeat but not change. */
  readonly routerAddress: string;
  readonly routerPort: number;
}

/** What the parameters of a StorageClass mean. */
export interface VolumeParameters {
  readonly backend: string;
  readonly basePath: string;
  /** One address or several, separated by commas; see {@linkcode parseNvmeAddresses}. */
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  /** How long two nodes may share a block volume for a migration, in seconds. */
  readonly migrationTimeoutSeconds: number;
  /** The file system of capabilities that name none; "" leaves it to the driver. */
  readonly fsType: string;
  /** What only the node uses; passed through the volume context as it stands. */
  readonly node: Readonly<Record<string, string>>;
}

type Check = (key: string, value: string, defaults: ParameterDefaults) => void;

const nodeKeys: Readonly<Record<string, Check>> = {
  /** The legacy driver's key; `csi.storage.k8s.io/fstype`, which ends in the capability, wins over it. */
  fsType: matching(/^(?:ext4|xfs)$/, "ext4 or xfs"),
  fsLabel: matching(/^[A-Za-z0-9._][A-Za-z0-9._-]{0,11}$/, "1 to 12 characters of A-Z, a-z, 0-9, ., _ and -"),
  ctrlLossTmo: integer(-1, 86_400),
  reconnectDelay: integer(1, 3_600),
  // 0 is how the legacy driver says that it is left to the kernel.
  keepAliveTmo: integer(0, 3_600),
  nrIoQueues: integer(1, 256),
  fastIoFailTmo: integer(1, 86_400),
  hdrDigest: matching(/^(?:true|false)$/, "true or false"),
  dataDigest: matching(/^(?:true|false)$/, "true or false"),
  deviceLayer: matching(/^(?:auto|multipath|none)$/, "auto, multipath or none"),
  fsckMode: matching(/^(?:preen|off)$/, "preen or off"),
  // A force flag would switch off the last guard of mkfs: -F of mkfs.ext4, -f of mkfs.xfs, alone or in a cluster.
  mkfsOptions: matching(
    /^(?=.{1,512}$)[\x21-\x7e]+(?: [\x21-\x7e]+)*$/,
    "mkfs options separated by single spaces, at most 512 characters",
  ),
};

const controllerKeys: Readonly<Record<string, Check>> = {
  backend: (key, value, defaults) => mustEqual(key, value, defaults.backend, "--backend"),
  volumePath: checkBasePath,
  nvmePort: integer(1, 65_535),
  nvmeAddress: parseNvmeAddresses,
  migrationTimeoutSeconds: integer(30, 3_600),
};

/** Keys of the legacy Go driver. They must agree with this controller's settings: a volume on the wrong router is lost. */
const legacyKeys: Readonly<Record<string, Check>> = {
  rdsAddress: (key, value, defaults) => mustEqual(key, value, defaults.routerAddress, "--rds-address"),
  sshPort: (key, value, defaults) => mustEqual(key, value, String(defaults.routerPort), "--rds-port"),
  nqnPrefix: (key, value, defaults) => mustEqual(key, value, defaults.nqnPrefix, "--nqn-prefix"),
};

const checks: Readonly<Record<string, Check>> = { ...nodeKeys, ...controllerKeys, ...legacyKeys };

/** Every key that a StorageClass may have, beside those of the sidecars. */
export const parameterNames: readonly string[] = Object.keys(checks);

/** What each key is for, as a sentence. */
export const parameterHelp: Readonly<Record<string, string>> = {
  backend: "Name of the router; must be the controller's `--backend`.",
  volumePath:
    "Folder on the router that volumes go to: one of the controller's `--base-path`. Default: the first of them.",
  nvmePort: "Port that volumes are exported on, 1 to 65535. Default: the controller's `--nvme-port`.",
  nvmeAddress:
    "Address that nodes reach volumes at, or up to 8 of them, separated by commas: all are connected, and any one is enough. " +
    "Default: the controller's `--nvme-address`.",
  migrationTimeoutSeconds:
    "How long two nodes may share a block volume for a migration, 30 to 3600. Default: 300.",
  fsLabel: "Label of new file systems, 1 to 12 characters.",
  ctrlLossTmo: "Seconds after which a node gives a lost router up, -1 (never) to 86400. Default: 1800.",
  reconnectDelay: "Seconds between a node's attempts to reconnect, 1 to 3600. Default: 5.",
  keepAliveTmo: "Seconds of the NVMe keep-alive, 1 to 3600. Default, and 0: the kernel's, which is 5.",
  nrIoQueues: "I/O queues of a connection, 1 to 256. Default: one for each processor of the node.",
  fastIoFailTmo:
    "Seconds after which I/O to a lost router fails while the node goes on trying to reconnect, 1 to 86400. " +
    "Default: I/O waits for as long as the node tries.",
  hdrDigest:
    "`true` puts a checksum (CRC32C) to every header of NVMe/TCP; the router has to support it. Default: `false`.",
  dataDigest:
    "`true` puts a checksum (CRC32C) to all data of NVMe/TCP, which node and router compute for every byte; the " +
    "router has to support it. Default: `false`.",
  deviceLayer:
    "Whether a node puts a device-mapper map below the volume, which lets writers wait while the router reboots: `auto` " +
    "where its kernel has dm-multipath, `multipath` always, `none` never. Default: the node's `--device-layer`.",
  fsckMode:
    "`preen` checks a file system before its first mount of a stage and repairs what is safe; `off` does not.",
  mkfsOptions: "Options for mkfs, as `-x value` pairs; nothing that forces.",
  fsType:
    "The legacy driver's key for the file system, ext4 or xfs; `csi.storage.k8s.io/fstype` wins over it.",
  rdsAddress: "The legacy driver's key; must be the controller's `--rds-address`.",
  sshPort: "The legacy driver's key; must be the controller's `--rds-port`.",
  nqnPrefix: "The legacy driver's key; must be the controller's `--nqn-prefix`.",
};

/** Keys that the sidecars add or take for themselves. */
const sidecarPrefix = "csi.storage.k8s.io/";

/**
 * Reads the parameters of a StorageClass.
 *
 * @throws {VolumeError} invalid for an unknown key or a value that is not allowed, naming both
 */
export function parseParameters(
  parameters: Readonly<Record<string, string>>,
  defaults: ParameterDefaults,
): VolumeParameters {
  const own = ownParameters(parameters);
  for (const [key, value] of own) {
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (check === undefined) {
      throw new VolumeError(
        "invalid",
        `Cannot use the StorageClass parameter because it is unknown: key=${
          JSON.stringify(key.slice(0, 64))
        }; ` +
          `known are ${parameterNames.join(", ")}`,
      );
    }
    check(key, value, defaults);
  }
  const given = new Map(own);
  return {
    backend: given.get("backend") ?? defaults.backend,
    basePath: given.get("volumePath") ?? defaults.basePaths[0] ?? "",
    nvmeAddress: given.get("nvmeAddress") ?? defaults.nvmeAddress,
    nvmePort: Number(given.get("nvmePort") ?? defaults.nvmePort),
    migrationTimeoutSeconds: Number(given.get("migrationTimeoutSeconds") ?? 300),
    fsType: given.get("fsType") ?? "",
    node: Object.fromEntries(own.filter(([key]) => Object.hasOwn(nodeKeys, key))),
  };
}

/** Eight hex digits over the parameters that were given: a second CreateVolume of the name must give the same ones. */
export function parametersDigest(parameters: Readonly<Record<string, string>>): string {
  const own = ownParameters(parameters).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return digest(JSON.stringify(own), 8);
}

/**
 * What the node and a later ControllerPublishVolume need to know of the parameters: the volume context.
 */
export function volumeContext(parameters: VolumeParameters): Record<string, string> {
  return {
    backend: parameters.backend,
    nvmeAddress: parameters.nvmeAddress,
    nvmePort: String(parameters.nvmePort),
    volumePath: parameters.basePath,
    migrationTimeoutSeconds: String(parameters.migrationTimeoutSeconds),
    ...parameters.node,
  };
}

/**
 * Reads a volume context that came back. Keys that this driver did not put there are the sidecars' or the earlier
 * driver's and are passed over; those it knows must be valid.
 *
 * @throws {VolumeError} invalid when a known key has a value that is not allowed
 */
export function parseVolumeContext(
  context: Readonly<Record<string, string>>,
  defaults: ParameterDefaults,
): VolumeParameters {
  // Where new volumes may go says nothing about one that is there already.
  const known = ownParameters(fromLegacyContext(context)).filter(([key]) =>
    key !== "volumePath" &&
    Object.hasOwn(checks, key) && !Object.hasOwn(legacyKeys, key)
  );
  return parseParameters(Object.fromEntries(known), defaults);
}

/**
 * Whether a PersistentVolume says that it is static: that the disk which it names is to be imported if it is no volume yet. A
 * StorageClass cannot say so.
 *
 * @throws {VolumeError} invalid for anything but true and false
 */
export function parseStatic({ static: value = "false" }: Readonly<Record<string, string>>): boolean {
  if (value !== "true" && value !== "false") refuse("static", value, "true or false");
  return value === "true";
}

function ownParameters(parameters: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(parameters).filter(([key]) => !key.startsWith(sidecarPrefix));
}

/** The longest folder for volumes, in bytes: with it every command fits into what the router takes in one. */
export const maxBasePathBytes = 64;

/**
 * Checks a folder for volumes by itself: absolute, plain segments, nothing that climbs.
 *
 * @throws {VolumeError} invalid when it is anything else
 */
export function assertBasePath(key: string, value: string): void {
  const segments = value.split("/").slice(1);
  const plain = value.startsWith("/") && value.length <= maxBasePathBytes &&
    segments.every((segment) => /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(segment));
  if (!plain) {
    refuse(
      key,
      value,
      `an absolute path of at most ${maxBasePathBytes} characters A-Z, a-z, 0-9, ., _ and -, without .. and without a slash at its end`,
    );
  }
}

/**
 * Only the folders themselves: a delete that was cut off after the disk entry knows no more than the id, and looks for
 * its image in exactly these.
 */
function checkBasePath(key: string, value: string, defaults: ParameterDefaults): void {
  assertBasePath(key, value);
  if (!defaults.basePaths.includes(value)) {
    refuse(key, value, `${defaults.basePaths.join(" or ")} (--base-path)`);
  }
}

function mustEqual(key: string, value: string, own: string, flag: string): void {
  if (value !== own) refuse(key, value, `${JSON.stringify(own)}, which this controller manages (${flag})`);
}

function matching(form: RegExp, allowed: string): (key: string, value: string) => void {
  return (key, value) => {
    if (!form.test(value)) refuse(key, value, allowed);
  };
}

function integer(least: number, most: number): Check {
  return (key, value) => {
    const number = /^-?(?:0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : NaN;
    if (!(number >= least && number <= most)) refuse(key, value, `a whole number from ${least} to ${most}`);
  };
}

function refuse(key: string, value: string, allowed: string): never {
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(value.slice(0, 128))}; use ${allowed}`,
  );
}

/** Numbers of a connection that the legacy driver limits less than this one: the most of each, as it is allowed here. */
const most: Readonly<Record<string, number>> = {
  ctrlLossTmo: 86_400,
  reconnectDelay: 3_600,
  keepAliveTmo: 3_600,
};

/**
 * A volume context with what the legacy Go driver has written there in the words of this one; any other as it stands. A
 * volume keeps its context for good, so that none may be refused for a number that this driver's StorageClasses do not take:
 * 0 left a time to the kernel, and is left out; what is larger than is allowed becomes the largest.
 */
export function fromLegacyContext(
  context: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  // It names the export there, and this driver the router's backend.
  if (!Object.hasOwn(context, "nqn") || Object.hasOwn(context, "backend")) return context;
  return Object.fromEntries(
    Object.entries(context).flatMap(([key, value]) => {
      const limit = Object.hasOwn(most, key) ? most[key] : undefined;
      if (limit === undefined || !/^[0-9]+$/.test(value)) return [[key, value]];
      const number = Number(value);
      return number === 0 ? [] : [[key, String(Math.min(number, limit))]];
    }),
  );
}

/** Most addresses of one router: each is a path that a node connects. */
export const maxNvmeAddresses = 8;

const addressForm = /^[A-Za-z0-9:](?:[A-Za-z0-9.:-]{0,253}[A-Za-z0-9:])?$/;

/**
 * Reads the addresses that nodes reach volumes at: IP addresses or host names, separated by commas.
 *
 * @throws {VolumeError} invalid when one can be neither, when one is there twice, or when there are none or too many
 */
export function parseNvmeAddresses(key: string, text: string): readonly string[] {
  const addresses = text.split(",");
  const sound = addresses.length <= maxNvmeAddresses && addresses.every((one) => addressForm.test(one)) &&
    new Set(addresses).size === addresses.length;
  if (sound) return addresses;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${
      JSON.stringify(text.slice(0, 128))
    }; use an IP address or a host name, ` +
      `or up to ${maxNvmeAddresses} different ones separated by commas`,
  );
}
