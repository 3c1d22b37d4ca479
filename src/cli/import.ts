import { stringify } from "yaml";
import { readClusterAddress } from "./config/cluster.ts";
import { objectFlags, routerFlags } from "./config/flag_tables.ts";
import { type ConfigFiles, noFiles, readOneBackend, systemFiles } from "./config/backends.ts";
import { type Import, type ImportRequest, importVolume } from "../controller/import/import.ts";
import { readExistingObjects } from "./existing_objects.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "./flags.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { type ControllerRun, withController } from "./controller_command.ts";
import { kindName, type VolumeKind } from "../volume/model/capabilities.ts";
import type { Environment } from "./config/config.ts";
import type { ControllerConfig } from "./config/router_settings.ts";
import { assertVolumeId, isVolumeId } from "../volume/model/ids/ids.ts";
import { usableBytes } from "../volume/model/encryption.ts";
import { formatBytes } from "../volume/model/sizes.ts";
import { modesOfVolumes } from "../volume/rules/legacy_migration.ts";

/** The text of `rds-csi import --help` before the flags. */
export const usage = `Usage: rds-csi import SLOT --kind KIND [flags]
       rds-csi import --path /POOL/FILE --kind KIND [--slot SLOT] [flags]

Turns an existing file-backed disk, or a file without a disk, into a volume of this cluster, and prints a PersistentVolume
to apply. The data stays unchanged. The disk gets this cluster's record beside the note in its comment, and the router no
longer mounts a file system in it; file and slot keep their names.

The driver never formats or deletes such a volume, and takes no snapshots of it. "rds-csi release SLOT" removes the record
again.

With a cluster to ask (--kubeconfig; in a pod it is found) it prints nothing for a volume that a PersistentVolume names
already.

The command refuses a disk that may be in use: its export is on, the router has mounted its file system, another disk uses
its file, or it carries another cluster's record. For a volume that already has this cluster's record the command only
prints the PersistentVolume: with a lost cluster's --cluster-id it restores that cluster's PersistentVolumes.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 120_000;

/** `rds-csi import`: makes an existing disk or file a volume, and prints a PersistentVolume for it. */
export async function importCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const { config, cluster, request, object, json } = readImportOptions(
    args,
    io.env,
    await systemFiles(args, io.env),
  );
  const { done, existing } = await withController(
    { name: "import", config, timeoutMs, cluster },
    io,
    async (deps, context) => {
      const objects = await readExistingObjects(deps, context);
      const done = await importVolume(deps, request, context);
      return { done, existing: objects.get(done.id) };
    },
  );
  // The output goes into a file; messages for the person go to standard error.
  for (const line of explain(done)) io.err(line);
  if (existing !== undefined) {
    io.err(`Nothing is printed because ${existing} names the volume already.`);
    return exitCodes.ok;
  }
  if (cluster === undefined) {
    io.err("No cluster was asked: apply this only if no PersistentVolume names the volume yet.");
  }
  const sizeBytes = usableBytes(done.sizeBytes, done.encrypted);
  const volume = persistentVolume({ ...done, volumeHandle: config.ids.add(done.id), sizeBytes }, object);
  io.out(json ? JSON.stringify(volume, undefined, 2) : toYaml(volume));
  return exitCodes.ok;
}

function explain({ outcome, id, imagePath, sizeBytes, encrypted, withdrawn }: Import): string[] {
  const what = `${id} (${imagePath}, ${formatBytes(sizeBytes)})`;
  const text = {
    imported: `The disk ${what} is a volume of this cluster now.`,
    already: `The disk ${what} was imported before.`,
    own: `The volume ${what} is one that this driver made: nothing was changed.`,
    would: `The disk ${what} can be imported. Nothing was changed.`,
  };
  const name = withdrawn === "" ? "" : ` under ${withdrawn}`;
  const cut = `Its export${name} ${outcome === "would" ? "would be" : "was"} withdrawn.`;
  const secret = "It is encrypted: put the Secret of the passphrase into nodeStageSecretRef and " +
    "nodePublishSecretRef.";
  return [text[outcome], ...withdrawn === undefined ? [] : [cut], ...encrypted ? [secret] : []];
}

/** A person's choices for a PersistentVolume. */
interface VolumeObjectOptions {
  readonly name: string;
  /** In Kubernetes' words. */
  readonly accessMode: string;
  readonly readOnly: boolean;
  /** "" for none. */
  readonly storageClassName: string;
  readonly claim: { readonly namespace: string; readonly name: string } | undefined;
  readonly driverName: string;
}

/** The facts of the volume itself. */
interface VolumeFacts {
  readonly volumeHandle: string;
  readonly sizeBytes: bigint;
  readonly kind: VolumeKind;
  /** Whether nodes encrypt it. @default {false} */
  readonly encrypted?: boolean;
}

/** Stands for the Secret of an encrypted volume, which the router does not know. */
const unknownSecret = { name: "name-of-its-secret", namespace: "namespace-of-its-secret" };

/**
 * A PersistentVolume that a person applies. Nothing deletes its volume: the policy is Retain, and without the
 * annotation `pv.kubernetes.io/provisioned-by` no provisioner counts it as its own. Its capacity is exactly the disk's:
 * with a larger one the kubelet would make the node grow a volume that cannot grow.
 */
export function persistentVolume(volume: VolumeFacts, options: VolumeObjectOptions): object {
  const { claim, readOnly } = options;
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: options.name },
    spec: {
      capacity: { storage: String(volume.sizeBytes) },
      volumeMode: volume.kind.access === "block" ? "Block" : "Filesystem",
      accessModes: [options.accessMode],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: options.storageClassName,
      ...claim === undefined ? {} : { claimRef: { namespace: claim.namespace, name: claim.name } },
      csi: {
        driver: options.driverName,
        volumeHandle: volume.volumeHandle,
        ...volume.kind.access === "block" ? {} : { fsType: kindName(volume.kind) },
        ...readOnly ? { readOnly } : {},
        ...volume.encrypted
          ? {
            volumeAttributes: { encrypted: "true" },
            nodeStageSecretRef: { ...unknownSecret },
            nodePublishSecretRef: { ...unknownSecret },
          }
          : {},
      },
    },
  };
}

/** An object as YAML. Every text is quoted, so that it is not mistaken for a number. */
export function toYaml(value: object): string {
  return stringify(value, { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "PLAIN", lineWidth: 0 })
    .trimEnd();
}

/** Flags that only `rds-csi import` has. */
export const importCommandFlags: FlagTable = {
  "path": {
    form: "text",
    help: "A file on the router without a disk: the command makes a disk of it, with its data.",
  },
  "slot": {
    form: "text",
    help: "Slot of the disk that --path makes. Default: the file's name without `.img`.",
  },
  "kind": {
    form: "text",
    choices: ["ext4", "xfs", "block"],
    help: "What the disk holds. Required for a disk that is not yet a volume.",
  },
  "access-mode": {
    form: "text",
    choices: Object.keys(modesOfVolumes),
    fallback: "ReadWriteOnce",
    help: "The access mode of the PersistentVolume; ReadWriteMany for block volumes only.",
  },
  "read-only": { form: "switch", help: "Mark the PersistentVolume as read-only." },
  "exported-is-unused": {
    form: "switch",
    help:
      "You vouch that the export is unused: the command withdraws it. A machine that still uses it loses the disk at once.",
  },
  "dry-run": { form: "switch", help: "Check everything, print the PersistentVolume, and change nothing." },
  "name": { form: "text", help: "Name of the PersistentVolume. Default: the slot." },
  "storage-class-name": {
    form: "text",
    help:
      "Its storageClassName. Default: none, so it binds only to a claim that names no class, or that names this volume.",
  },
  "claim": { form: "text", help: "The claim to reserve it for, as NAMESPACE/NAME." },
  "json": { form: "switch", help: "Print the PersistentVolume as JSON." },
};

/** Flags of `rds-csi import` except those of the router. */
export const importFlags: FlagTable = { ...importCommandFlags, ...objectFlags };

/** The options of `rds-csi import`. */
export interface ImportOptions {
  readonly config: ControllerConfig;
  /** The cluster whose PersistentVolumes are compared; undefined when there is none. */
  readonly cluster: ControllerRun["cluster"];
  readonly request: ImportRequest;
  readonly object: VolumeObjectOptions;
  readonly json: boolean;
}

const objectName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
const namespaceName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Reads the command line of `rds-csi import`.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} invalid when the slot has no form that a volume handle can have
 */
export function readImportOptions(
  args: readonly string[],
  env: Environment,
  files: ConfigFiles = noFiles,
): ImportOptions {
  const [first] = args;
  const given = first === undefined || first.startsWith("-") ? undefined : first;
  const flags = readFlags(
    { ...importFlags, ...routerFlags },
    given === undefined ? args : args.slice(1),
    env,
  );
  const id = readSlot(flags, given);
  const kind = readKind(flags);
  const accessMode = flags.text("access-mode");
  if (accessMode === "ReadWriteMany" && kind?.access === "mount") {
    flags.problem(
      "access-mode",
      accessMode,
      "ReadWriteOnce or ReadWriteOncePod: two nodes would corrupt a file system",
    );
  }
  const imagePath = flags.text("path");
  const address = readClusterAddress(flags, env);
  const options = {
    cluster: address && { address, driverName: flags.text("driver-name") },
    request: {
      id,
      imagePath: imagePath === "" ? undefined : imagePath,
      kind,
      mode: modesOfVolumes[accessMode] ?? "single-node-multi-writer",
      exportIsUnused: flags.switch("exported-is-unused"),
      dryRun: flags.switch("dry-run"),
    },
    object: readObject(flags, id, accessMode),
    json: flags.switch("json"),
  };
  return { config: readOneBackend(flags, files), ...options };
}

function readSlot(flags: FlagValues, given: string | undefined): string {
  const path = flags.text("path");
  const slot = flags.text("slot");
  if (path === "") {
    if (slot !== "") {
      throw new FlagError(["--slot goes with --path: name an existing disk before the flags"]);
    }
    if (given === undefined) throw new FlagError(["SLOT is required, before the flags, or --path"]);
    assertVolumeId(given);
    return given;
  }
  if (given !== undefined) {
    throw new FlagError(["name either a SLOT or --path; the slot for a file is --slot"]);
  }
  const id = slot === "" ? path.slice(path.lastIndexOf("/") + 1).replace(/[.]img$/, "") : slot;
  if (slot === "" && !isVolumeId(id)) {
    throw new FlagError([
      "--slot is required because the file's name is not a valid slot: 1 to 32 characters of a-z, 0-9 and -",
    ]);
  }
  assertVolumeId(id);
  return id;
}

function readKind(flags: FlagValues): VolumeKind | undefined {
  const kind = flags.text("kind");
  if (kind === "ext4" || kind === "xfs") return { access: "mount", filesystem: kind };
  return kind === "block" ? { access: "block" } : undefined;
}

function readObject(flags: FlagValues, id: string, accessMode: string): VolumeObjectOptions {
  const name = flags.text("name") || id;
  if (!objectName.test(name)) flags.problem("name", name, "a valid Kubernetes object name");
  const claim = flags.text("claim");
  const [namespace = "", claimName = "", ...more] = claim.split("/");
  const isClaim = namespaceName.test(namespace) && objectName.test(claimName) && more.length === 0;
  if (claim !== "" && !isClaim) flags.problem("claim", claim, "NAMESPACE/NAME");
  return {
    name,
    accessMode,
    readOnly: flags.switch("read-only"),
    storageClassName: flags.text("storage-class-name"),
    claim: claim === "" ? undefined : { namespace, name: claimName },
    driverName: flags.text("driver-name"),
  };
}
