import { type ConfigFiles, readOneBackend } from "../config/backends.ts";
import { readClusterAddress } from "../config/cluster.ts";
import { objectFlags, routerFlags } from "../config/flag_tables.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import { ownAndLegacyFiles, readInventory } from "../../controller/inventory.ts";
import { readPlates } from "../../controller/names/name_plates.ts";
import type { Environment } from "../config/config.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import {
  type AccessMode,
  parseRecordedCapabilities,
  type VolumeCapabilities,
} from "../../volume/model/capabilities.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import {
  describePlate,
  type NamePlate,
  namesById,
  platesFolder,
  type StoredPlate,
} from "../../volume/model/name_plates.ts";
import { isEncrypted, type OwnedVolume } from "../../volume/model/record.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Inventory } from "../../volume/model/inventory.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { judgePlates, plateLeftovers, type PlateVerdict } from "../../volume/rules/name_plates.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { readExistingObjects } from "../existing_objects.ts";
import { persistentVolume, toYaml } from "../import.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { withController } from "../controller_command.ts";

/** Flags of `rds-csi adopt --from-cluster` without those of the router. */
export const lostClusterFlags: FlagTable = {
  "from-cluster": {
    form: "text",
    help:
      "Instead of a volume: the id of a lost cluster, or hash:XXXXXXXX as its files carry it. Prints a PersistentVolume for each of its volumes that has none and that no node has, and changes nothing.",
  },
  "claims": {
    form: "switch",
    help:
      "With --from-cluster: print each PersistentVolume with its claim, as the name plates on the router say. A volume " +
      "without one certain name is left out, with the reason.",
  },
  "storage-class-name": {
    form: "text",
    help:
      "With --from-cluster: the storageClassName of the PersistentVolumes. Default: with --claims the plate's, else none.",
  },
  ...objectFlags,
  "vouch": {
    form: "switch",
    help:
      "With --from-cluster, without a cluster to ask: you vouch that no PersistentVolume names its volumes. " +
      "Two for one volume mix up the data of two claims.",
  },
  "json": { form: "switch", help: "With --from-cluster: print one List in JSON." },
};

/**
 * Stands for the claim of a volume that is not known. Without one the next claim of the class would get the
 * volume, whoever's data it holds.
 */
const unknownClaim = { namespace: "namespace-of-its-claim", name: "name-of-its-claim" };

/** The name plates of a lost cluster. */
interface LostPlates {
  /** Those of what is left of a volume or a snapshot. */
  readonly plates: readonly StoredPlate[];
  /** The others: their volumes are gone. */
  readonly gone: readonly StoredPlate[];
  /** Why they cannot be read, for people; undefined where they were. */
  readonly unreadable?: string;
}

/** The volumes of a lost cluster, and what is known of them. */
interface LostVolumes extends LostPlates {
  readonly found: readonly OwnedVolume[];
  /** See {@linkcode readExistingObjects}. */
  readonly existing: ReadonlyMap<string, string>;
  /** The volumes that claims of the cluster have already, as plates would name them. */
  readonly bound: readonly NamePlate[];
}

/** A volume that is printed, with its claim if that is. */
interface PrintedVolume {
  readonly volume: OwnedVolume;
  readonly plate: NamePlate | undefined;
}

/** How long the router may take, for the name plates alone and for everything, in milliseconds. */
const platesMs = 60_000;
const timeoutMs = 180_000;

/** Whether the command is about all volumes of a lost cluster, not about one of the legacy driver. */
export function isFromCluster(args: readonly string[]): boolean {
  return args.some((arg) => /^--?from-cluster(?:=|$)/.test(arg));
}

/**
 * `rds-csi adopt --from-cluster ID`: prints a PersistentVolume for each volume of a lost cluster that has none, and that no
 * node holds; with `--claims` also its claim, unless no name plate of any volume can be read. It changes nothing: a cluster
 * replaces a lost one by using its id, because files and snapshots have that in their names permanently.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} unavailable when the router or the cluster cannot be asked; with `--claims` also while the router may
 *   not show every volume
 */
export async function adoptFromCluster(
  args: readonly string[],
  io: CommandIo,
  files: ConfigFiles,
): Promise<number> {
  const flags = readInPlaceOf(args, io.env);
  const driverName = flags.text("driver-name");
  const address = readClusterAddress(flags, io.env);
  const config = readOneBackend(flags, files);
  if (address === undefined && !flags.switch("vouch")) {
    throw new FlagError([
      "--from-cluster needs a cluster that says which PersistentVolumes exist: run it in the controller's pod or with " +
      "--kubeconfig; without one --vouch says that none names these volumes",
    ]);
  }
  const cluster = address && { address, driverName };
  const run = { name: "adopt", config, timeoutMs, cluster };
  const wantsClaims = flags.switch("claims");
  const lost = await withController(run, io, (deps, context) => readLost(deps, wantsClaims, context));
  const { found, existing } = lost;
  const withClaims = wantsClaims &&
    found.some(({ stored: { id } }) => lost.plates.some((one) => one.id === id));
  const missing = found.filter((volume) => isFree(volume) && !existing.has(volume.stored.id));
  const verdicts = judgePlates([...lost.plates, ...lost.bound]);
  const printed = missing.flatMap((volume): PrintedVolume[] => {
    const verdict = verdicts.get(volume.stored.id);
    if (!withClaims) return [{ volume, plate: undefined }];
    return verdict !== undefined && "plate" in verdict ? [{ volume, plate: verdict.plate }] : [];
  });
  const objects = printed.flatMap((one) => {
    const storageClassName = flags.text("storage-class-name") || (one.plate?.className ?? "");
    return objectsFor(one, config.ids, { driverName, storageClassName });
  });
  if (flags.switch("json")) {
    io.out(JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, undefined, 2));
  } else if (objects.length > 0) io.out(objects.map((object) => toYaml(object)).join("\n---\n"));
  // The output goes into a file; messages for the person go to standard error.
  const folder = platesFolder(config.settings.cluster);
  const lines = explain(lost, printed, { verdicts, wantsClaims, withClaims, ids: config.ids, folder });
  for (const line of lines) io.err(line);
  return found.length === 0 ? exitCodes.unknown : exitCodes.ok;
}

async function readLost(
  deps: ControllerDeps,
  withClaims: boolean,
  context: CallContext,
): Promise<LostVolumes> {
  const { basePaths, settleMs } = deps.settings;
  const { volumes: found, inventory } = await readInventory(deps, context);
  // Of two volumes of one claim the right one may be on a pool that is not there yet.
  if (withClaims) assertAbsenceProven(inventory, basePaths, settleMs);
  const plates = await readLostPlates(deps, inventory, context);
  // Read last: whatever was applied meanwhile exists.
  const existing = await readExistingObjects(deps, context);
  const objects = withClaims ? await deps.clusterView?.volumes(context) : undefined;
  const bound = objects?.flatMap(({ volumeId: id, claim }): NamePlate[] =>
    claim?.namespace === undefined
      ? []
      : [{ id, namespace: claim.namespace, name: claim.name, className: "", isCut: false }]
  );
  return { found, ...plates, existing, bound: bound ?? [] };
}

/** They are hints: PersistentVolumes can be made without them. @throws {VolumeError} cancelled, deadline when the call ends */
async function readLostPlates(
  deps: ControllerDeps,
  inventory: Inventory,
  context: CallContext,
): Promise<LostPlates> {
  try {
    // The lost cluster may have had more base folders than are set now: another volume of a claim may be there.
    const plates = await readPlates(deps, context, { folders: "all", limitMs: platesMs });
    const slots = new Set(inventory.volumes.map(({ id }) => id));
    const idle = plates.filter(({ id }) => !slots.has(id));
    const { files } = idle.length === 0
      ? { files: [] }
      : await ownAndLegacyFiles({ ...deps, context }, inventory);
    const gonePaths = new Set(plateLeftovers(idle, files, deps.settings.cluster));
    const isGone = ({ path }: StoredPlate) => gonePaths.has(path);
    return { plates: plates.filter((plate) => !isGone(plate)), gone: plates.filter(isGone) };
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    return { plates: [], gone: [], unreadable: error.message };
  }
}

/** The PersistentVolume of a volume, and its claim if that is known. */
function objectsFor(
  { volume: { stored, record }, plate }: PrintedVolume,
  ids: VolumeIdPrefix,
  options: { readonly driverName: string; readonly storageClassName: string },
): object[] {
  const capabilities = parseRecordedCapabilities(record.capabilities)!;
  const { kind, encrypted = false } = capabilities;
  const sizeBytes = usableBytes(stored.sizeBytes, encrypted);
  const accessMode = accessModeOf(capabilities);
  const facts = { volumeHandle: ids.add(stored.id), sizeBytes, kind, encrypted };
  const claim = plate ?? unknownClaim;
  const object = { ...options, readOnly: false, name: stored.id, accessMode, claim };
  const { storageClassName } = options;
  return [
    persistentVolume(facts, object),
    ...plate === undefined ? [] : [{
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { namespace: plate.namespace, name: plate.name },
      spec: {
        accessModes: [accessMode],
        volumeMode: kind.access === "block" ? "Block" : "Filesystem",
        resources: { requests: { storage: String(sizeBytes) } },
        storageClassName,
        volumeName: stored.id,
      },
    }],
  ];
}

/** The flags with that cluster's id as --cluster-id, which overrides any other: the last one counts. */
function readInPlaceOf(args: readonly string[], env: Environment): FlagValues {
  const table = { ...lostClusterFlags, ...routerFlags };
  const [id = "", ...others] = readFlags(table, args, env).list("from-cluster");
  if (id === "" || others.length > 0) throw new FlagError(["--from-cluster needs the id of one cluster"]);
  return readFlags(table, [...args, "--cluster-id", id], env);
}

/** Whether no node holds it, and its record describes it. */
function isFree({ stored, record }: OwnedVolume): boolean {
  const isHeld = stored.exported || record.holders.length > 0;
  return !isHeld && parseRecordedCapabilities(record.capabilities) !== undefined;
}

/** The Kubernetes access mode for the volume's capabilities; of several modes the one that allows most. */
function accessModeOf({ modes }: VolumeCapabilities): string {
  const has = (...wanted: AccessMode[]) => wanted.some((mode) => modes.includes(mode));
  if (has("multi-node-multi-writer")) return "ReadWriteMany";
  if (has("single-node-writer", "single-node-multi-writer")) return "ReadWriteOnce";
  if (has("single-node-single-writer")) return "ReadWriteOncePod";
  return has("multi-node-reader-only") ? "ReadOnlyMany" : "ReadWriteOnce";
}

/** What is told beside the objects. */
interface Explanation {
  readonly verdicts: ReadonlyMap<string, PlateVerdict>;
  /** Whether claims were asked for, and whether any can be known. */
  readonly wantsClaims: boolean;
  readonly withClaims: boolean;
  /** The name of the folder of its plates. */
  readonly folder: string;
  readonly ids: VolumeIdPrefix;
}

/** Volumes are named as "rds-csi withdraw" takes them, with the prefix of their router, and as people call them. */
function explain(
  lost: LostVolumes,
  printed: readonly PrintedVolume[],
  { verdicts, wantsClaims, withClaims, ids, folder }: Explanation,
): string[] {
  const { found, existing, plates, gone, unreadable } = lost;
  if (found.length === 0) return ["No volume on this router carries that cluster's mark."];
  const encrypted = printed.filter(({ volume }) => isEncrypted(volume.record)).length;
  const names = namesById(plates);
  const called = (id: string) => names.has(id) ? `${ids.add(id)} [${names.get(id)}]` : ids.add(id);
  const leftOut = found.filter((volume) => !printed.some((one) => one.volume === volume));
  const namespaces = [...new Set(printed.flatMap(({ plate }) => plate?.namespace ?? []))].toSorted();
  return [
    `Nothing was changed. Printed for ${
      volumes(printed.length)
    } of ${found.length}; give the controller that ` +
    `--cluster-id, for good, and ${
      withClaims
        ? `make the namespaces before you apply them: ${namespaces.join(", ") || "none"}.`
        : "put the claim of each into claimRef before you apply them."
    }`,
    ...wantsClaims && !withClaims
      ? [`Their claims are unknown, because ${whyUnknown(unreadable, folder)}.`]
      : unreadable !== undefined
      ? [`The name plates cannot be read: ${unreadable}`]
      : [],
    ...encrypted === 0 ? [] : [
      `${volumes(encrypted)} of them with encryption: put the Secret of the passphrase into ` +
      "nodeStageSecretRef and nodePublishSecretRef.",
    ],
    ...withClaims || names.size === 0 ? [] : [
      "--claims prints them with the claims that the name plates on the router name:",
      ...printed.flatMap(({ volume: { stored: { id } } }) => names.has(id) ? [`  ${called(id)}`] : []),
    ],
    ...leftOut.map((volume) => {
      const { id } = volume.stored;
      const why = reasonLeftOut(volume, existing.get(id), verdicts.get(id));
      return `Left out: ${called(id)}, ${why.replace("VOLUME", ids.add(id))}`;
    }),
    ...wantsClaims
      ? gone.map((plate) =>
        `Left out: ${describePlate(plate)}, whose volume ${ids.add(plate.id)} is not on this router.`
      )
      : [],
  ];
}

function whyUnknown(unreadable: string | undefined, folder: string): string {
  return unreadable === undefined
    ? `no name plate of theirs is in ${folder} on the router`
    : `the name plates cannot be read: ${unreadable}`;
}

function volumes(count: number): string {
  return count === 1 ? "1 volume" : `${count} volumes`;
}

function reasonLeftOut(
  volume: OwnedVolume,
  existing: string | undefined,
  verdict: PlateVerdict | undefined,
): string {
  const { stored: { exported }, record: { holders } } = volume;
  if (existing !== undefined) return `which ${existing} names already.`;
  if (holders.length > 0 || exported) {
    const holder = holders.map(({ nodeId }) => nodeId).join(", ") || "an unknown node";
    return `which ${holder} has. When that node is gone for good: rds-csi withdraw VOLUME --vouch`;
  }
  if (!isFree(volume)) {
    return "whose record does not say what it holds: write its PersistentVolume by hand.";
  }
  const reason = verdict !== undefined && "reason" in verdict ? verdict.reason : "it has no name plate";
  return `because ${reason}; without --claims its PersistentVolume is printed.`;
}
