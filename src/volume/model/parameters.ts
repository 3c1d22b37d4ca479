import { parseNvmeAddresses } from "./address.ts";
import { digest } from "./digest.ts";
import { VolumeError } from "../errors.ts";

/** The controller's settings that fill in missing parameters of a StorageClass. */
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

/** The parsed parameters of a StorageClass. */
export interface VolumeParameters {
  readonly backend: string;
  readonly basePath: string;
  /** One address or several, separated by commas; see {@linkcode parseNvmeAddresses}. */
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  /** Whether a PersistentVolume names no port, so that `nvmePort` is the controller's of now. @default {false} */
  readonly namesNoPort?: boolean;
  /** How long two nodes may share a block volume for a migration, in seconds. */
  readonly migrationTimeoutSeconds: number;
  /** The file system of capabilities that name none; "" for the driver's default. */
  readonly fsType: string;
  /** Whether nodes encrypt the volume. */
  readonly encrypted: boolean;
  /** Parameters that only the node uses; passed through the volume context unchanged. */
  readonly node: Readonly<Record<string, string>>;
}

/** Returns undefined for a value that is allowed, else what is, in words. */
type Form = (value: string) => string | undefined;
type Check = (value: string, defaults: ParameterDefaults) => string | undefined;

/** The parameters that only nodes use. */
export const nodeForms = {
  /** The legacy driver's key; `csi.storage.k8s.io/fstype`, which becomes part of the capability, overrides it. */
  fsType: matching(/^(?:ext4|xfs)$/, "ext4 or xfs"),
  fsLabel: matching(/^[A-Za-z0-9._][A-Za-z0-9._-]{0,11}$/, "1 to 12 characters of A-Z, a-z, 0-9, ., _ and -"),
  ctrlLossTmo: integer(-1, 86_400),
  reconnectDelay: integer(1, 3_600),
  // The legacy driver writes 0 to leave it to the kernel.
  keepAliveTmo: integer(0, 3_600),
  nrIoQueues: integer(1, 256),
  fastIoFailTmo: integer(1, 86_400),
  hdrDigest: matching(/^(?:true|false)$/, "true or false"),
  dataDigest: matching(/^(?:true|false)$/, "true or false"),
  deviceLayer: matching(/^(?:auto|multipath|none)$/, "auto, multipath or none"),
  encrypted: matching(/^(?:true|false)$/, "true or false"),
  allowDiscards: matching(/^(?:true|false)$/, "true or false"),
  pbkdfMemory: integer(32, 1_024),
  pbkdfTime: integer(100, 10_000),
  fsckMode: matching(/^(?:preen|off)$/, "preen or off"),
  // A force flag (-F of mkfs.ext4, -f of mkfs.xfs, alone or combined with others) would switch off mkfs's last safety
  // check.
  mkfsOptions: matching(
    /^(?=.{1,512}$)[\x21-\x7e]+(?: [\x21-\x7e]+)*$/,
    "mkfs options separated by single spaces, at most 512 characters",
  ),
} satisfies Readonly<Record<string, Form>>;

const controllerKeys: Readonly<Record<string, Check>> = {
  backend: (value, { backend }) => unlessEqual(value, backend, "--backend"),
  volumePath: checkBasePath,
  nvmePort: integer(1, 65_535),
  nvmeAddress: (value) => void parseNvmeAddresses("nvmeAddress", value),
  migrationTimeoutSeconds: integer(30, 3_600),
};

/**
 * Keys of the legacy Go driver. They must agree with this controller's settings: a volume on the wrong router is lost.
 */
const legacyKeys: Readonly<Record<string, Check>> = {
  rdsAddress: (value, { routerAddress }) => unlessEqual(value, routerAddress, "--rds-address"),
  sshPort: (value, { routerPort }) => unlessEqual(value, String(routerPort), "--rds-port"),
  nqnPrefix: (value, { nqnPrefix }) => unlessEqual(value, nqnPrefix, "--nqn-prefix"),
};

const checks: Readonly<Record<string, Check>> = { ...nodeForms, ...controllerKeys, ...legacyKeys };

/** Every key that a StorageClass may have, besides those of the sidecars. */
export const parameterNames: readonly string[] = Object.keys(checks);

/** A sentence of help for each key. */
export const parameterHelp: Readonly<Record<string, string>> = {
  backend: "Name of the router: a `name` in the file of `--config`, or the controller's `--backend`.",
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
  encrypted:
    "`true` encrypts the volume on the node (LUKS2), with the passphrase of the secret that the class names by " +
    "`csi.storage.k8s.io/node-stage-secret-name` and `…/node-publish-secret-name`. Default: `false`.",
  allowDiscards:
    "`true` passes trims of an encrypted volume on, which shows the router what is unused. Default: `false`.",
  pbkdfMemory:
    "MiB of memory that a guess of the passphrase costs, and each opening on a node, 32 to 1024. Default: 128.",
  pbkdfTime:
    "Milliseconds that a guess of the passphrase costs on the node that formats, 100 to 10000. Default: 2000.",
  fsckMode:
    "`preen` checks a file system before its first mount of a stage and repairs what is safe; `off` does not. Default: `preen`.",
  mkfsOptions: "Options for mkfs, as `-x value` pairs; nothing that forces.",
  fsType:
    "The legacy driver's key for the file system, ext4 or xfs; `csi.storage.k8s.io/fstype` wins over it.",
  rdsAddress: "The legacy driver's key; must be the controller's `--rds-address`.",
  sshPort: "The legacy driver's key; must be the controller's `--rds-port`.",
  nqnPrefix: "The legacy driver's key; must be the controller's `--nqn-prefix`.",
};

/** Keys that the sidecars add or use themselves. */
const sidecarPrefix = "csi.storage.k8s.io/";

/**
 * Parses the parameters of a StorageClass.
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
        "Cannot use the StorageClass parameter because it is unknown: " +
          `key=${JSON.stringify(key.slice(0, 64))}; known are ${parameterNames.join(", ")}`,
      );
    }
    const allowed = check(value, defaults);
    if (allowed !== undefined) refuse(key, value, allowed);
  }
  const given = new Map(own);
  assertEncryption(given);
  return {
    backend: given.get("backend") ?? defaults.backend,
    basePath: given.get("volumePath") ?? defaults.basePaths[0] ?? "",
    nvmeAddress: given.get("nvmeAddress") ?? defaults.nvmeAddress,
    nvmePort: Number(given.get("nvmePort") ?? defaults.nvmePort),
    migrationTimeoutSeconds: Number(given.get("migrationTimeoutSeconds") ?? 300),
    fsType: given.get("fsType") ?? "",
    encrypted: given.get("encrypted") === "true",
    node: Object.fromEntries(own.filter(([key]) => Object.hasOwn(nodeForms, key))),
  };
}

/** Parameters that say nothing without encryption. */
const encryptionKeys = ["allowDiscards", "pbkdfMemory", "pbkdfTime"];

function assertEncryption(given: ReadonlyMap<string, string>): void {
  const layer = given.get("deviceLayer");
  if (given.get("encrypted") === "true") {
    if (layer === "multipath") refuse("deviceLayer", layer, "auto or none with encrypted=true");
    return;
  }
  const useless = encryptionKeys.find((key) => given.has(key));
  if (useless !== undefined) refuse(useless, given.get(useless)!, "it only with encrypted=true");
}

/** Eight hex digits of the given parameters: a second CreateVolume of the name must pass the same ones. */
export function parametersDigest(parameters: Readonly<Record<string, string>>): string {
  const own = ownParameters(parameters).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return digest(JSON.stringify(own), 8);
}

/** Makes the volume context: the parameters that the node and a later ControllerPublishVolume need. */
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
 * Parses a volume context. Keys that this driver did not write belong to the sidecars or the legacy driver and are
 * ignored; known keys must be valid.
 *
 * @throws {VolumeError} invalid when a known key has a value that is not allowed
 */
export function parseVolumeContext(
  context: Readonly<Record<string, string>>,
  defaults: ParameterDefaults,
): VolumeParameters {
  // The folder for new volumes does not matter for an existing volume.
  const known = ownParameters(fromLegacyContext(context)).filter(([key]) =>
    key !== "volumePath" &&
    Object.hasOwn(checks, key) && !Object.hasOwn(legacyKeys, key)
  );
  const parameters = parseParameters(Object.fromEntries(known), defaults);
  return Object.hasOwn(context, "nvmePort") ? parameters : { ...parameters, namesNoPort: true };
}

/**
 * Whether a PersistentVolume is static: the disk that it names is to be imported if it is no volume yet. A StorageClass
 * cannot be.
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

/** The longest folder for volumes, in bytes: with it every command stays within the router's limit for one command. */
export const maxBasePathBytes = 64;

/**
 * Checks the form of a folder for volumes: absolute, plain segments, no `..`.
 *
 * @throws {VolumeError} invalid when it has another form
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
 * Only the folders themselves are allowed: a delete that was interrupted after the disk entry knows only the id, and
 * searches for the image in exactly these.
 */
function checkBasePath(value: string, { basePaths }: ParameterDefaults): string | undefined {
  assertBasePath("volumePath", value);
  return basePaths.includes(value) ? undefined : `${basePaths.join(" or ")} (--base-path)`;
}

function unlessEqual(value: string, own: string, flag: string): string | undefined {
  return value === own ? undefined : `${JSON.stringify(own)}, which this controller manages (${flag})`;
}

function matching(form: RegExp, allowed: string): Form {
  return (value) => form.test(value) ? undefined : allowed;
}

function integer(least: number, most: number): Form {
  return (value) => {
    const number = /^-?(?:0|[1-9][0-9]{0,8})$/.test(value) ? Number(value) : NaN;
    return number >= least && number <= most ? undefined : `a whole number from ${least} to ${most}`;
  };
}

function refuse(key: string, value: string, allowed: string): never {
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(value.slice(0, 128))}; use ${allowed}`,
  );
}

/** Numbers of a connection for which the legacy driver has a higher limit than this one, with this driver's limit. */
const most: Readonly<Record<string, number>> = {
  ctrlLossTmo: 86_400,
  reconnectDelay: 3_600,
  keepAliveTmo: 3_600,
};

/**
 * Converts the values that the legacy Go driver wrote into a volume context to this driver's; returns any other context
 * unchanged. A volume keeps its context forever, so no value may be refused because this driver's StorageClasses do not
 * accept it. 0 left a time to the kernel, and is left out; a value above the limit becomes the limit.
 */
export function fromLegacyContext(
  context: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  // The legacy driver's context names the export, this driver's the router's backend.
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
