import type { Environment } from "../config/config.ts";
import type { FlagTable } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parseDirectoryHandle } from "../../volume/model/directory/handle.ts";
import { assertHandle } from "../../volume/model/ids/handles.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import {
  type DescribedVolume,
  formatTable,
  formatVolume,
  isHealthy,
  jsonValue,
  volumeJson,
} from "./print.ts";
import { judgeVolume } from "../../doctor/node/volume_judge.ts";
import { isHere, type ViewAdapters, viewVolume } from "../../doctor/node/volume_view.ts";
import { volumesOfNode } from "../../doctor/node/volumes.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeDeps, systemNodeParts } from "../serve/node.ts";
import { nodeFlags } from "../config/flag_tables.ts";
import { type NodeOptions, readNodeFlags } from "../node_flags.ts";
import { runLimited } from "../../async/deadline.ts";

/** Flags of `rds-csi describe` about this node's volumes. */
export const describeFlags: FlagTable = {
  "json": { form: "switch", help: "Print a JSON object for one volume, or an array for all." },
  ...nodeFlags,
};

/** The text of `rds-csi describe --help` before the flags. */
export const usage = `Usage: rds-csi describe [VOLUME|pvc/NAMESPACE/NAME|pv/NAME] [flags]

On a node: shows the state of a volume there: its state file, the present proof of its device, the connections to the
router, every mount, the processes that have the device open, and its problems. Without a volume it prints a table of all
volumes on this node. It opens no device, does not wait for a device that hangs, and needs no credentials.

In a pod of the controller, where it needs no flags, or with --kubeconfig: follows a claim to its pod: claim,
PersistentVolume, attachments, the volume on the router, and complaints of pods on its nodes. It follows a PersistentVolume
from its claim, and says where the claim hangs:

  kubectl -n rds-csi exec deploy/rds-csi-controller -c driver -- rds-csi describe pvc/NAMESPACE/NAME

It changes nothing. Its other name is rds-csi troubleshoot.

Flags:
`;

/** How long it may take, in milliseconds. */
const timeoutMs = 60_000;

/** The options of `rds-csi describe`. */
export interface DescribeOptions extends NodeOptions {
  /** Undefined for all volumes. */
  readonly volumeId: string | undefined;
  readonly json: boolean;
}

/** `rds-csi describe`: shows this node's volumes, or where a claim hangs. */
export async function describeCommand(args: readonly string[], io: CommandIo): Promise<number> {
  // A node has no credentials: only the controller's pod can ask the cluster about a claim.
  if (/^pvc?\//.test(args[0] ?? "")) {
    return await (await import("./of_claim.ts")).describeClaim(args, io);
  }
  const parts = systemNodeParts(systemClock, commandNotes("describe", io));
  return await describeVolumes(readDescribeOptions(args, io.env, parts.files), parts, io);
}

/**
 * Reads the command line of `rds-csi describe`.
 *
 * @throws {FlagError} naming all problems at once
 * @throws {VolumeError} invalid when the volume id has another form
 */
export function readDescribeOptions(
  args: readonly string[],
  env: Environment,
  files: Pick<KernelFiles, "readText">,
): DescribeOptions {
  const named = args[0] !== undefined && !args[0].startsWith("-");
  const { flags, node } = readNodeFlags(describeFlags, named ? args.slice(1) : args, env, files);
  const json = flags.switch("json");
  flags.assertNoProblems();
  if (named) {
    assertNoDirectory(args[0]!);
    assertHandle(args[0]!);
  }
  return { ...node, volumeId: named ? args[0] : undefined, json };
}

/** @throws {VolumeError} invalid for the handle of a shared directory, which has neither a device nor a state file */
function assertNoDirectory(handle: string): void {
  const directory = parseDirectoryHandle(handle);
  if (directory === undefined) return;
  throw new VolumeError(
    "invalid",
    `Cannot describe the volume because it is a shared directory, of which only the mount table knows: ` +
      `path=${directory.path}; findmnt -t nfs4 shows on the node where it is mounted`,
  );
}

/** Prints a volume or the table of all, and returns the exit code. */
export async function describeVolumes(
  options: DescribeOptions,
  parts: NodeParts,
  io: CommandIo,
): Promise<number> {
  const { volumeId, json } = options;
  const deps = openNodeDeps(options.config, parts);
  const volumes = await runLimited(
    parts.clock,
    { name: "describe", timeoutMs, signal: io.signal },
    (context) =>
      readAt(
        { deps, files: parts.files, depth: volumeId === undefined ? "shown" : "everything" },
        volumeId,
        context,
      ),
  );
  if (volumeId !== undefined && volumes.length === 0) {
    io.err(
      `rds-csi describe: the volume ${volumeId} is not on this node: no state file, no connection, no map` +
        (volumeId.includes("/") ? "; if it is a claim, write pvc/NAMESPACE/NAME" : ""),
    );
    return exitCodes.unknown;
  }
  const one = volumeId === undefined ? undefined : volumes[0];
  const value = one === undefined ? volumes.map(volumeJson) : volumeJson(one);
  const lines = one === undefined ? formatTable(volumes) : formatVolume(one);
  for (const line of json ? [JSON.stringify(value, jsonValue, 2)] : lines) io.out(line);
  return volumes.every(isHealthy) ? exitCodes.ok : exitCodes.failed;
}

/** Reads all volumes, or one, of which only a map may be left: that has its name. */
export async function readAt(
  adapters: ViewAdapters,
  volumeId: string | undefined,
  context: CallContext,
): Promise<readonly DescribedVolume[]> {
  const all = await volumesOfNode(adapters.deps, context);
  const unknown = { id: volumeId ?? "", stagingState: undefined, connected: [] };
  const wanted = volumeId === undefined ? all : [all.find(({ id }) => id === volumeId) ?? unknown];
  const views = await Promise.all(wanted.map((volume) => viewVolume(adapters, volume, context)));
  return views.filter(isHere).map((view) => ({ view, findings: judgeVolume(view) }));
}
