import { type ConfigFiles, readOneBackend } from "../config/backends.ts";
import { readClusterAddress } from "../config/cluster.ts";
import { objectFlags, routerFlags } from "../config/flag_tables.ts";
import { readInventory } from "../../controller/inventory.ts";
import type { Environment } from "../config/config.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import {
  type AccessMode,
  parseRecordedCapabilities,
  type VolumeCapabilities,
} from "../../volume/model/capabilities.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids.ts";
import { isEncrypted, type OwnedVolume } from "../../volume/model/record.ts";
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
      "Instead of a volume: the id of a cluster that was lost, or hash:XXXXXXXX as its files carry it. Prints a " +
      "PersistentVolume for each of its volumes that has none and that no node has, and changes nothing.",
  },
  "storage-class-name": {
    form: "text",
    help: "With --from-cluster: the storageClassName of the PersistentVolumes. Default: none.",
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
 * Stands for the claim of a volume, which the router does not know. Without one the next claim of the class would get the
 * volume, whoever's data it holds.
 */
const unknownClaim = { namespace: "namespace-of-its-claim", name: "name-of-its-claim" };

/** The volumes of a lost cluster. */
interface LostVolumes {
  readonly found: readonly OwnedVolume[];
  /** Those that are printed. */
  readonly missing: readonly OwnedVolume[];
  /** See {@linkcode readExistingObjects}. */
  readonly existing: ReadonlyMap<string, string>;
}

/** How long the router may take, in milliseconds. */
const timeoutMs = 120_000;

/** Whether the command is about all volumes of a lost cluster, not about one of the legacy driver. */
export function isFromCluster(args: readonly string[]): boolean {
  return args.some((arg) => /^--?from-cluster(?:=|$)/.test(arg));
}

/**
 * `rds-csi adopt --from-cluster ID`: prints a PersistentVolume for each volume of a lost cluster that has none, and that no
 * node holds. It changes nothing: a cluster replaces a lost one by using its id, because files and snapshots have that in
 * their names permanently.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} unavailable when the router or the cluster cannot be asked
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
  const { found, existing } = await withController(
    { name: "adopt", config, timeoutMs, cluster },
    io,
    async (deps, context) => {
      const { volumes: found } = await readInventory(deps, context);
      // Read last: whatever was applied meanwhile exists.
      return { found, existing: await readExistingObjects(deps, context) };
    },
  );
  const options = {
    readOnly: false,
    storageClassName: flags.text("storage-class-name"),
    claim: unknownClaim,
    driverName,
  };
  const missing = found.filter((volume) => isFree(volume) && !existing.has(volume.stored.id));
  const objects = missing.map(({ stored, record }) => {
    const capabilities = parseRecordedCapabilities(record.capabilities)!;
    const { kind, encrypted = false } = capabilities;
    const facts = {
      volumeHandle: config.ids.add(stored.id),
      sizeBytes: usableBytes(stored.sizeBytes, encrypted),
      kind,
      encrypted,
    };
    return persistentVolume(facts, { ...options, name: stored.id, accessMode: accessModeOf(capabilities) });
  });
  if (flags.switch("json")) {
    io.out(JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }, undefined, 2));
  } else if (objects.length > 0) io.out(objects.map((object) => toYaml(object)).join("\n---\n"));
  // The output goes into a file; messages for the person go to standard error.
  for (const line of explain({ found, missing, existing }, config.ids)) io.err(line);
  return found.length === 0 ? exitCodes.unknown : exitCodes.ok;
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

/** Volumes are named as "rds-csi withdraw" takes them, with the prefix of their router. */
function explain({ found, missing, existing }: LostVolumes, ids: VolumeIdPrefix): string[] {
  if (found.length === 0) return ["No volume on this router carries that cluster's mark."];
  const encrypted = missing.filter(({ record }) => isEncrypted(record)).length;
  const word = (count: number) => count === 1 ? "1 volume" : `${count} volumes`;
  return [
    `Nothing was changed. Printed for ${
      word(missing.length)
    } of ${found.length}; give the controller that --cluster-id, ` +
    "for good, and put the claim of each into claimRef before you apply them.",
    ...encrypted === 0 ? [] : [
      `${word(encrypted)} of them with encryption: put the Secret of the passphrase into nodeStageSecretRef.`,
    ],
    ...found.filter((volume) => !missing.includes(volume)).map((volume) =>
      leftOut(volume, existing.get(volume.stored.id), ids)
    ),
  ];
}

function leftOut(
  { stored: { id, exported }, record: { holders } }: OwnedVolume,
  existing: string | undefined,
  ids: VolumeIdPrefix,
): string {
  const handle = ids.add(id);
  if (existing !== undefined) return `Left out: ${handle}, which ${existing} names already.`;
  if (holders.length === 0 && !exported) {
    return `Left out: ${handle}, whose record does not say what it holds: write its PersistentVolume by hand.`;
  }
  const holder = holders.map(({ nodeId }) => nodeId).join(", ") || "an unknown node";
  return `Left out: ${handle}, which ${holder} has. When that node is gone for good: rds-csi withdraw ${handle} --vouch`;
}
