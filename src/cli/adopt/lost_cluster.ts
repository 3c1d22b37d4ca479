import { type ConfigFiles, readOneBackend } from "../config/backends.ts";
import { routerFlags, serveFlags } from "../config/flag_tables.ts";
import { readInventory } from "../../controller/inventory.ts";
import type { Environment } from "../config/config.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import {
  type AccessMode,
  parseRecordedCapabilities,
  type VolumeCapabilities,
} from "../../volume/model/capabilities.ts";
import { isEncrypted, type OwnedVolume } from "../../volume/model/record.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { persistentVolume, toYaml } from "../import.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { withController } from "../controller_command.ts";

/** Flags of `rds-csi adopt --from-cluster` without those of the router. */
export const lostClusterFlags: FlagTable = {
  "from-cluster": {
    form: "text",
    help:
      "Instead of a volume: the id of a cluster that was lost, or hash:XXXXXXXX as its files carry it. Prints a " +
      "PersistentVolume for each of its volumes that no node has, and changes nothing.",
  },
  "storage-class-name": {
    form: "text",
    help: "With --from-cluster: the storageClassName of the PersistentVolumes. Default: none.",
  },
  "driver-name": serveFlags["driver-name"]!,
  "json": { form: "switch", help: "With --from-cluster: print one List in JSON." },
};

/** How long the router may take, in milliseconds. */
const timeoutMs = 120_000;

/** Whether the command is about all volumes of a lost cluster, not about one of the legacy driver. */
export function isFromCluster(args: readonly string[]): boolean {
  return args.some((arg) => /^--?from-cluster(?:=|$)/.test(arg));
}

/**
 * `rds-csi adopt --from-cluster ID`: prints a PersistentVolume for each volume of a lost cluster that no node holds. It
 * changes nothing: a cluster replaces a lost one by using its id, because files and snapshots have that in their names
 * permanently.
 *
 * @throws {FlagError} naming all problems at once
 */
export async function adoptFromCluster(
  args: readonly string[],
  io: CommandIo,
  files: ConfigFiles,
): Promise<number> {
  const flags = readInPlaceOf(args, io.env);
  const config = readOneBackend(flags, files);
  const found = await withController(
    { name: "adopt", config, timeoutMs },
    io,
    async (deps, context) => (await readInventory(deps, context)).volumes,
  );
  const options = {
    readOnly: false,
    storageClassName: flags.text("storage-class-name"),
    claim: undefined,
    driverName: flags.text("driver-name"),
  };
  const objects = found.filter(isFree).map((volume) => {
    const { stored, record } = volume;
    const capabilities = parseRecordedCapabilities(record.capabilities)!;
    const { kind, encrypted = false } = capabilities;
    const facts = {
      volumeHandle: config.prefix + stored.id,
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
  for (const line of explain(found, objects.length, config.prefix)) io.err(line);
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
function explain(found: readonly OwnedVolume[], printed: number, prefix: string): string[] {
  if (found.length === 0) return ["No volume on this router carries that cluster's mark."];
  const held = found.filter((volume) => !isFree(volume));
  const encrypted = found.filter((volume) => isFree(volume) && isEncrypted(volume.record));
  const word = (count: number) => count === 1 ? "1 volume" : `${count} volumes`;
  return [
    `Nothing was changed. Printed for ${
      word(printed)
    } of ${found.length}; give the controller that --cluster-id, for good, ` +
    "before you apply them.",
    ...encrypted.length === 0 ? [] : [
      `${
        word(encrypted.length)
      } of them with encryption: put the Secret of the passphrase into nodeStageSecretRef.`,
    ],
    ...held.map(({ stored: { id, exported }, record: { holders } }) => {
      const handle = prefix + id;
      if (holders.length === 0 && !exported) {
        return `Left out: ${handle}, whose record does not say what it holds: write its PersistentVolume by hand.`;
      }
      const holder = holders.map(({ nodeId }) => nodeId).join(", ") || "an unknown node";
      return `Left out: ${handle}, which ${holder} has. When that node is gone for good: rds-csi withdraw ${handle} --vouch`;
    }),
  ];
}
