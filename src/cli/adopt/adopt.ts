import { type Environment, takeVolume } from "../config/config.ts";
import type { ControllerConfig } from "../config/router_settings.ts";
import { type ConfigFiles, noFiles, readBackendOf, systemFiles } from "../config/backends.ts";
import { volumeFlags } from "../config/flag_tables.ts";
import { adoptVolume } from "../../controller/legacy/adopt.ts";
import { type FlagTable, readFlags } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import type { ClusterVolume } from "../../volume/ports/cluster_view.ts";
import { claimOf } from "../../volume/rules/legacy_migration.ts";
import { adoptFromCluster, isFromCluster, lostClusterFlags } from "./lost_cluster.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { withController } from "../controller_command.ts";

/** Flags of `rds-csi adopt`. */
export const adoptFlags: FlagTable = {
  "kind": {
    form: "text",
    choices: ["ext4", "xfs", "block"],
    help: "The volume's kind: a file system, or a raw block device. Required.",
  },
  "node": {
    form: "list",
    help: "Id of a node that has the volume now. The next publish cuts off every other node that has it.",
  },
  "access-mode": {
    form: "text",
    choices: ["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany"],
    fallback: "ReadWriteOnce",
    help: "The access mode of its PersistentVolume.",
  },
  "read-only": { form: "switch", help: "Its PersistentVolume is read-only." },
  ...lostClusterFlags,
};

/** The text of `rds-csi adopt --help` before the flags. */
export const usage = `Usage: rds-csi adopt VOLUME --kind KIND [--node NODE]... [flags]
       rds-csi adopt --from-cluster ID [flags]

Takes over a volume of the legacy Go driver: its disk gets this cluster's record, and nothing else changes. A controller
that can ask the cluster which node has which volume does this by itself; use the command where it cannot. You vouch that
the volume belongs to this cluster, and that only the named nodes have it.

A volume that a node has keeps its NQN until it is unpublished. The driver never formats it.

With --from-cluster it handles the volumes that this driver made for a cluster whose etcd was lost: another cluster takes
its place by its --cluster-id, and the command prints the PersistentVolumes that are missing there. With --claims it prints
their claims too, as the name plates on the router say. Without, each names a claim that does not exist: put the right one in
its place, and only then apply it.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 60_000;

/** The options of `rds-csi adopt`. */
export interface AdoptOptions {
  readonly config: ControllerConfig;
  /** The volume as its PersistentVolume would describe it. */
  readonly volume: ClusterVolume;
  readonly nodes: readonly string[];
}

/** `rds-csi adopt`: migrates a volume of the legacy driver. */
export async function adoptCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const files = await systemFiles(args, io.env);
  if (isFromCluster(args)) return await adoptFromCluster(args, io, files);
  const { config, volume, nodes } = readAdoptOptions(args, io.env, files);
  const attachments = nodes.map((nodeId) => ({
    volumeId: volume.volumeId,
    nodeId,
    attached: true,
    sinceSeconds: undefined,
    epochCounter: 0,
  }));
  const claim = claimOf(volume, attachments, systemClock.now());
  const id = volume.volumeId;
  const isNew = await withController(
    { name: "adopt", config, timeoutMs },
    io,
    (deps, context) => adoptVolume(deps, id, claim, context),
  );
  const held = nodes.length === 0
    ? "no node has it; its export stays as it is until it is published or unpublished"
    : `it goes on under its NQN for ${nodes.join(", ")}`;
  io.out(`The volume ${id} ${isNew ? "is" : "was already"} this cluster's: ${held}.`);
  return exitCodes.ok;
}

/**
 * Reads the command line of `rds-csi adopt`.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} invalid when the volume id has another form
 */
export function readAdoptOptions(
  args: readonly string[],
  env: Environment,
  files: ConfigFiles = noFiles,
): AdoptOptions {
  const { handle, rest } = takeVolume(
    args,
    ", or --from-cluster ID for all volumes of a lost cluster, with or without --claims",
  );
  const flags = readFlags({ ...adoptFlags, ...volumeFlags }, rest, env);
  const kind = flags.required("kind", "because the driver cannot see what the volume holds");
  const nodes = flags.list("node");
  const accessMode = flags.text("access-mode");
  const readOnly = flags.switch("read-only");
  const { config, id } = readBackendOf(handle, flags, files);
  const volume: ClusterVolume = {
    name: "",
    volumeId: id,
    access: kind === "block" ? "block" : "mount",
    fsType: kind === "block" ? "" : kind,
    accessModes: [accessMode],
    readOnly,
    attributes: {},
  };
  return { config, volume, nodes };
}
