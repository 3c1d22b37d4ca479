import { VolumeError } from "../errors.ts";
import { parseNvmeAddresses } from "./address.ts";
import { type Epoch, formatEpoch, legacyEpoch, parseEpoch } from "./epoch.ts";
import { encodeHandle } from "./ids/handles.ts";
import type { ClaimName, ContextValues, PublishContext } from "./publish_context.ts";

/** The export that a publish context names, as far as the cluster keeps it; undefined where the context names none. */
export interface PublishedExport {
  readonly epoch?: Epoch | undefined;
  readonly nqn?: string | undefined;
  readonly port?: number | undefined;
}

/** NVMe Base Specification, "NVMe Qualified Names": at most 223 bytes. */
const maxNqnLength = 223;

/**
 * Parses the publish context of a volume, also one of the legacy Go driver's. Unknown keys are ignored.
 *
 * @param volumeContext the volume context, for the legacy driver
 * @throws {VolumeError} invalid when a key is missing or its value is wrong; identity-mismatch when the NQN is another
 *   volume's
 */
export function parsePublishContext(
  given: ContextValues,
  volumeId: string,
  volumeContext: ContextValues = {},
): PublishContext {
  const values = inOwnWords(given, volumeContext);
  const isLegacy = values !== given;
  const take = (key: string, form: RegExp): string => {
    const value = Object.hasOwn(values, key) ? values[key]! : "";
    if (form.test(value)) return value;
    throw wrongContextValue("publish context", key, value);
  };
  const nqn = take("nqn", /^nqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[A-Za-z0-9._:-]+$/);
  const epoch = take("epoch", /^[A-Za-z0-9-]{1,32}$/);
  if (nqn.length > maxNqnLength) throw wrongContextValue("publish context", "nqn", nqn);
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
    claim: parseClaim(values["claim"]),
    mayReplay: parseFlag(values, "mayReplay"),
    machine: Object.hasOwn(values, "machine") ? take("machine", /^[0-9a-f]{8}$/) : undefined,
    needsLayer: parseFlag(values, "layer"),
    encrypted: parseFlag(values, "encrypted"),
  };
}

/** Parses the export that the publish context in a VolumeAttachment names: whatever is no such value counts as absent. */
export function parsePublishedExport({ epoch = "", nqn, nvmePort }: ContextValues): PublishedExport {
  return { epoch: parseEpoch(epoch), nqn, port: Number(nvmePort) || undefined };
}

/** The counter of the export's epoch; 0 where it has none, as with the legacy driver. */
export function publishedCounter({ epoch }: PublishedExport): number {
  return epoch?.counter ?? 0;
}

/** The epoch of a publish context as text; "" where it names none, such as the legacy driver's. */
export function epochText({ epoch = "" }: ContextValues): string {
  return epoch;
}

/**
 * The file system of a capability that names none. This driver puts it into the volume context, the legacy driver into
 * the publish context.
 */
export function filesystemNamed(publish: ContextValues, volume: ContextValues): string {
  return volume["fsType"] || publish["fs_type"] || "";
}

/** The error of a key of a context whose value cannot be used. */
export function wrongContextValue(where: string, key: string, value: string): VolumeError {
  const what = value === "" ? "is missing" : "is malformed";
  return new VolumeError(
    "invalid",
    `Cannot use the ${where} as a value ${what}: key=${key} value=${JSON.stringify(value.slice(0, 80))}`,
  );
}

/** The claim is only shown to people, so an invalid one is left out. */
function parseClaim(text = ""): ClaimName | undefined {
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

/** With several routers an NQN always has an epoch: without it the router's name could pass for a volume's. */
function isNqnOf(nqn: string, volumeId: string, epoch: string): boolean {
  const names = encodeHandle(volumeId).split(":");
  const [, ...parts] = nqn.split(":");
  const [inEpoch = names.length === 1 ? epoch : undefined, ...more] = parts.slice(names.length);
  return names.every((name, at) => parts[at] === name) && inEpoch === epoch && more.length === 0;
}

/** Absent is false: a missing key never allows anything, and read-only comes from the access mode too. */
function parseFlag(values: ContextValues, key: string): boolean {
  const value = Object.hasOwn(values, key) ? values[key]! : "false";
  if (value === "true") return true;
  if (value === "false") return false;
  throw wrongContextValue("publish context", key, value);
}

function parsePort(text: string): number {
  const port = Number(text);
  if (port <= 65_535) return port;
  throw wrongContextValue("publish context", "nvmePort", text);
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
export function inOwnWords(publish: ContextValues, volume: ContextValues): ContextValues {
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
