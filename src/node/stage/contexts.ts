import { fromLegacyContext, parseNvmeAddresses } from "../../volume/model/parameters.ts";
import { VolumeError } from "../../volume/errors.ts";
import { encodeHandle } from "../../volume/model/ids.ts";
import { parseMkfsOptions, withoutPanic } from "../../volume/model/filesystem/mkfs_options.ts";
import type { FilesystemType } from "../../volume/model/capabilities.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import type { KeyCost } from "../../volume/ports/encryption.ts";
import type { ClaimName } from "../../volume/ports/cluster_ports.ts";
import type { Target } from "../../volume/ports/node_ports.ts";
import { formatEpoch, legacyEpoch } from "../../volume/model/epoch.ts";

/** What ControllerPublishVolume passes to the node. */
export interface PublishContext {
  readonly nqn: string;
  readonly epoch: string;
  /** Addresses of the router where the volume can be reached; never empty. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** The volume's least size; 0 where the legacy driver published it, which passes no size. */
  readonly sizeBytes: bigint;
  readonly readOnly: boolean;
  readonly mayFormat: boolean;
  /** Whether the volume was, or may have been, a person's disk with whatever was on it. */
  readonly imported: boolean;
  /**
   * The claim whose owner may allow a format in the next epoch; undefined when it is unknown, or formatting cannot be
   * allowed.
   */
  readonly claim?: ClaimName;
  /** Whether the log may be replayed although the volume is only read here. */
  readonly mayReplay: boolean;
  /** The machine that the volume was published to, see `machineHash()`; undefined where that is not known. */
  readonly machine: string | undefined;
  /** The controller may turn the export off and on, because it relies on a device layer below the volume. */
  readonly needsLayer: boolean;
  /** Whether the volume is recorded as encrypted. */
  readonly encrypted: boolean;
}

/** What the StorageClass passes to the node. */
export interface NodeParameters {
  readonly connection: Pick<
    Target,
    "ctrlLossTmo" | "reconnectDelay" | "keepAliveTmo" | "nrIoQueues" | "fastIoFailTmo" | "digests"
  >;
  /** Undefined where the StorageClass says nothing about it. */
  readonly deviceLayer: DeviceLayer | undefined;
  readonly encryption: {
    readonly encrypted: boolean;
    readonly allowDiscards: boolean;
    readonly keyCost: KeyCost;
  };
  readonly fsLabel: string | undefined;
  readonly fsck: "preen" | "off";
  /** Arguments for mkfs. */
  readonly mkfsOptions: readonly string[];
}

type Values = Readonly<Record<string, string>>;

/** NVMe Base Specification, "NVMe Qualified Names": at most 223 bytes. */
const maxNqnLength = 223;

/**
 * Parses the publish context of a volume, also one of the legacy Go driver's.
 *
 * @param volumeContext the volume context, for the legacy driver
 * @throws {VolumeError} invalid when a key is missing or its value is wrong; identity-mismatch when the NQN is another
 *   volume's
 */
export function parsePublishContext(
  given: Values,
  volumeId: string,
  volumeContext: Values = {},
): PublishContext {
  const values = inOwnWords(given, volumeContext);
  const isLegacy = values !== given;
  const take = (key: string, form: RegExp): string => {
    const value = Object.hasOwn(values, key) ? values[key]! : "";
    if (form.test(value)) return value;
    throw wrong("publish context", key, value);
  };
  const nqn = take("nqn", /^nqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[A-Za-z0-9._:-]+$/);
  const epoch = take("epoch", /^[A-Za-z0-9-]{1,32}$/);
  if (nqn.length > maxNqnLength) throw wrong("publish context", "nqn", nqn);
  if (!isNqnOf(nqn, volumeId, epoch)) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the publish context because its NQN is not this volume's: volume=${volumeId} epoch=${epoch} nqn=${nqn}`,
    );
  }
  return {
    nqn,
    epoch,
    addresses: parseNvmeAddresses("nvmeAddress", take("nvmeAddress", /./)),
    port: parsePort(take("nvmePort", /^[1-9][0-9]{0,4}$/)),
    sizeBytes: BigInt(take("size", isLegacy ? /^0$/ : /^[1-9][0-9]{0,18}$/)),
    readOnly: parseFlag(values, "readonly"),
    mayFormat: parseFlag(values, "mayFormat"),
    imported: values["imported"] !== "false",
    ...parseClaim(values["claim"]),
    mayReplay: parseFlag(values, "mayReplay"),
    machine: Object.hasOwn(values, "machine") ? take("machine", /^[0-9a-f]{8}$/) : undefined,
    needsLayer: parseFlag(values, "layer"),
    encrypted: parseFlag(values, "encrypted"),
  };
}

/** The claim is only shown to people, so an invalid one is left out. */
function parseClaim(text = ""): Pick<PublishContext, "claim"> {
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? {} : { claim: { namespace, name } };
}

/** With several routers an NQN always has an epoch: without it the router's name could pass for a volume's. */
function isNqnOf(nqn: string, volumeId: string, epoch: string): boolean {
  const names = encodeHandle(volumeId).split(":");
  const [, ...parts] = nqn.split(":");
  const [inEpoch = names.length === 1 ? epoch : undefined, ...more] = parts.slice(names.length);
  return names.every((name, at) => parts[at] === name) && inEpoch === epoch && more.length === 0;
}

/**
 * Parses the node's part of a volume context. `filesystem` is undefined for a block volume, whose mkfs options are
 * ignored.
 *
 * @throws {VolumeError} invalid when a value is wrong
 */
export function parseNodeParameters(given: Values, filesystem: FilesystemType | undefined): NodeParameters {
  const values = fromLegacyContext(given);
  const take = (key: string, form: RegExp): string | undefined => {
    const value = Object.hasOwn(values, key) ? values[key]! : "";
    if (value === "") return undefined;
    if (form.test(value)) return value;
    throw wrong("volume context", key, value);
  };
  const number = (key: string, form = /^[1-9][0-9]{0,4}$/): number | undefined => {
    const value = take(key, form);
    return value === undefined ? undefined : Number(value);
  };
  return {
    connection: {
      ctrlLossTmo: number("ctrlLossTmo", /^(?:-1|0|[1-9][0-9]{0,4})$/),
      reconnectDelay: number("reconnectDelay"),
      // The kernel would take 0 as no keep-alive at all.
      keepAliveTmo: number("keepAliveTmo", /^(?:0|[1-9][0-9]{0,4})$/) || undefined,
      nrIoQueues: number("nrIoQueues", /^[1-9][0-9]{0,2}$/),
      fastIoFailTmo: number("fastIoFailTmo"),
      digests: [
        ...take("hdrDigest", /^(?:true|false)$/) === "true" ? ["header"] as const : [],
        ...take("dataDigest", /^(?:true|false)$/) === "true" ? ["data"] as const : [],
      ],
    },
    encryption: {
      encrypted: take("encrypted", /^(?:true|false)$/) === "true",
      allowDiscards: take("allowDiscards", /^(?:true|false)$/) === "true",
      keyCost: {
        memoryMiB: number("pbkdfMemory", /^[1-9][0-9]{1,3}$/),
        timeMs: number("pbkdfTime"),
      },
    },
    deviceLayer: take("deviceLayer", /^(?:auto|multipath|none)$/) as DeviceLayer | undefined,
    fsLabel: take("fsLabel", /^[A-Za-z0-9._][A-Za-z0-9._-]{0,11}$/),
    fsck: take("fsckMode", /^(?:preen|off)$/) === "off" ? "off" : "preen",
    mkfsOptions: filesystem === undefined
      ? []
      : parseMkfsOptions(withoutPanic(values.mkfsOptions ?? ""), filesystem),
  };
}

/** Absent is false: a missing key never allows anything, and read-only comes from the access mode too. */
function parseFlag(values: Values, key: string): boolean {
  const value = Object.hasOwn(values, key) ? values[key]! : "false";
  if (value === "true") return true;
  if (value === "false") return false;
  throw wrong("publish context", key, value);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (port <= 65_535) return port;
  throw wrong("publish context", "nvmePort", text);
}

function wrong(where: string, key: string, value: string): VolumeError {
  const what = value === "" ? "is missing" : "is malformed";
  return new VolumeError(
    "invalid",
    `Cannot use the ${where} as a value ${what}: key=${key} value=${JSON.stringify(value.slice(0, 80))}`,
  );
}

/** The keys of this driver's publish context that the legacy Go driver's does not have. */
const ownKeys = ["epoch", "size", "nqn"];

/**
 * Converts the publish context of the legacy Go driver's controller to this driver's keys; returns any other unchanged.
 * The legacy driver has neither epochs nor sizes: its export has the name of {@linkcode legacyEpoch}, and no size is
 * claimed. How it decides that a device is blank is unknown here, so its volumes are never formatted.
 *
 * @param volume the volume context, in which the legacy driver repeats some values
 */
export function inOwnWords(publish: Values, volume: Values): Values {
  if (ownKeys.some((key) => Object.hasOwn(publish, key))) return publish;
  const nqn = publish["nvme_nqn"] || volume["nqn"];
  if (!nqn) return publish;
  return {
    nqn,
    epoch: formatEpoch(legacyEpoch),
    nvmeAddress: publish["nvme_address"] || volume["nvmeAddress"] || "",
    nvmePort: publish["nvme_port"] || volume["nvmePort"] || "",
    size: "0",
    readonly: "false",
    mayFormat: "false",
  };
}

/**
 * The file system of a capability that names none. This driver puts it into the volume context, the legacy driver into
 * the publish context.
 */
export function filesystemNamed(publish: Values, volume: Values): string {
  return volume["fsType"] || publish["fs_type"] || "";
}
