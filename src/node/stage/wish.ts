import {
  type Capability,
  type FilesystemType,
  isReadOnlyMode,
  kindName,
} from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parsePassphrases, type Passphrases } from "../../volume/model/encryption.ts";
import { parseMountFlags } from "../../volume/model/filesystem/mount_flags.ts";
import type { PublishContext } from "../../volume/model/publish_context.ts";
import { parsePublishContext } from "../../volume/model/parse_context.ts";
import type { ConnectionSettings, Intent } from "../../volume/model/staging/state.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { connectedNqns } from "../connections/observe.ts";
import { choosesLayer } from "../layer/choose_layer.ts";
import type { NodeDeps } from "../deps.ts";
import { type NodeParameters, parseNodeParameters } from "./node_parameters.ts";

/** The fields of NodeStageVolume. */
export interface StageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly capability: Capability;
  readonly mountFlags: readonly string[];
  readonly publishContext: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
  /** Used for encrypted volumes only. @default {none} */
  readonly secrets?: Readonly<Record<string, string>>;
}

/** What a NodeStageVolume asks for, parsed. */
export interface StageWish {
  readonly volumeId: string;
  readonly publish: PublishContext;
  readonly parameters: NodeParameters;
  /** Undefined for a raw block volume. */
  readonly filesystem: FilesystemType | undefined;
  /** Undefined for a volume that is not encrypted. */
  readonly passphrases: Passphrases | undefined;
  /** Whether no other node can have the volume meanwhile, and this one may write: then it may change the keys. */
  readonly isSoleWriter: boolean;
  /** Whether the log of a file system may be replayed before it is mounted read-only. */
  readonly mayReplay: boolean;
  /** Without a map that lets writes wait. */
  readonly plain: Intent;
}

/**
 * Parses a request, and compares what its contexts say with each other and with this machine.
 *
 * @throws {VolumeError} invalid when they contradict each other; precondition when the volume was published to another machine
 */
export function parseWish(deps: NodeDeps, request: StageRequest): StageWish {
  const { capability, volumeId, volumeContext } = request;
  const publish = parsePublishContext(request.publishContext, volumeId, volumeContext);
  assertThisMachine(deps, volumeId, publish);
  const filesystem = capability.access === "mount" ? capability.filesystem : undefined;
  const given = parseNodeParameters(volumeContext, filesystem);
  const parameters = publish.needsLayer ? { ...given, deviceLayer: "multipath" as const } : given;
  assertSameEncryption(volumeId, publish, parameters);
  const isReading = isReadOnlyMode(capability.mode);
  return {
    volumeId,
    publish,
    parameters,
    filesystem,
    passphrases: publish.encrypted ? parsePassphrases(request.secrets ?? {}) : undefined,
    isSoleWriter: capability.mode.startsWith("single-node-") && !isReading,
    // A node that may write may replay the log, even if the mount is to be read-only.
    mayReplay: publish.mayReplay || !(publish.readOnly || isReading),
    plain: intentOf(request, publish, parameters.connection),
  };
}

/**
 * Throws if this is not the machine that the volume was published to. Two machines may have one node name: a clone, or
 * a new machine beside the one that it replaces. Host NQNs follow the name, so the router cannot distinguish the
 * machines.
 *
 * @throws {VolumeError} precondition when the volume was published to another machine
 */
function assertThisMachine(
  { machine, settings: { nodeId } }: NodeDeps,
  volumeId: string,
  publish: PublishContext,
): void {
  if (publish.machine === undefined || machine.is(publish.machine) !== false) return;
  throw new VolumeError(
    "precondition",
    `Cannot stage the volume because it was published to another machine of this node's name: volume=${volumeId} ` +
      `node=${nodeId} machine=${publish.machine}; delete the pods of this node that use it, so that it is detached and ` +
      "published anew, and switch the other machine off or give it another name",
  );
}

/**
 * Throws unless record and PersistentVolume agree, as the controller has seen them: plain text must not go where cipher
 * text is expected, nor the other way round.
 *
 * @throws {VolumeError} invalid
 */
function assertSameEncryption(
  volumeId: string,
  { encrypted }: PublishContext,
  { encryption }: NodeParameters,
): void {
  if (encrypted === encryption.encrypted) return;
  throw new VolumeError(
    "invalid",
    `Cannot stage the volume because its volume context says encrypted=${encryption.encrypted}, and it was published as ` +
      `encrypted=${encrypted}: volume=${volumeId}`,
  );
}

function intentOf(
  request: StageRequest,
  publish: PublishContext,
  connection: ConnectionSettings,
): Intent {
  const { readOnly, flags } = parseMountFlags(request.mountFlags);
  return {
    nqn: publish.nqn,
    epoch: publish.epoch,
    mayFormat: publish.mayFormat,
    addresses: publish.addresses,
    port: publish.port,
    connection,
    ...publish.encrypted ? { map: "crypt" } : {},
    kind: kindName(request.capability),
    readOnly: readOnly || publish.readOnly || isReadOnlyMode(request.capability.mode),
    mountFlags: flags,
    stagingPath: request.stagingPath,
    namespaceBytes: publish.sizeBytes,
  };
}

/** How often the kernel reconnects, in seconds. Waiting I/O cannot go on sooner. */
const layerReconnectDelay = 2;
/**
 * After how long the kernel's initiator fails requests that it could not send, in seconds: before it reconnects.
 * Otherwise it would send them to whatever namespace the target shows then, before it has checked which one that is.
 */
const layerFastIoFailTmo = 1;

/**
 * What is wanted, with a map where the volume is to have one: then with the parameters with which the node service has to make
 * the connection again by itself.
 *
 * @throws {VolumeError} precondition when the volume must have a map and this node cannot make one
 */
export async function chooseLayer(
  deps: NodeDeps,
  { volumeId, plain, parameters: { connection, deviceLayer } }: StageWish,
  context: CallContext,
): Promise<Intent> {
  const { nqn, map } = plain;
  // Writes to an encrypted volume do not wait: a mapping has the name of the map.
  if (map === "crypt") return plain;
  if ((deviceLayer ?? deps.settings.deviceLayer ?? "none") === "none") return plain;
  // A volume that is connected is used as it is, with a map or without.
  const isKnown = (await deps.stagingStore.find(volumeId))?.intent.nqn === nqn;
  if (isKnown && (await connectedNqns(deps, volumeId, context)).includes(nqn)) return plain;
  if (!await choosesLayer(deps, volumeId, deviceLayer, context)) return plain;
  const { reconnectDelay = layerReconnectDelay, fastIoFailTmo = layerFastIoFailTmo } = connection;
  return { ...plain, map: "multipath", connection: { ...connection, reconnectDelay, fastIoFailTmo } };
}

/**
 * Throws if the volume lacks a layer that the controller relies on: a volume that was connected without a layer stays
 * so.
 *
 * @throws {VolumeError} precondition when the volume needs a layer and has none
 */
export function assertLayered({ volumeId, publish }: StageWish, { map }: Intent): void {
  if (!publish.needsLayer || map === "multipath") return;
  throw new VolumeError(
    "precondition",
    `Cannot stage the volume because it is staged without its device layer: volume=${volumeId}; delete the pods of this ` +
      "node that use it, so that it is unstaged first",
  );
}
