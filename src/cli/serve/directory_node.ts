import type { NodeConfig } from "../config/config.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import { directoryNodeMethods } from "../../csi/services/directory_node.ts";
import { SystemFilesystems } from "../../filesystem/filesystems.ts";
import { LibcSysfsWriter } from "../../host/sysfs_writer.ts";
import { TimedFiles } from "../../host/timed_files.ts";
import { kernelIdentifier } from "../../nfs/client_identifier.ts";
import { SystemNfsMounts } from "../../nfs/nfs_mounts.ts";
import type { NodeNotes } from "../../node/deps.ts";
import type { DirectoryNodeDeps } from "../../node/directory/deps.ts";
import { DirectoryNode } from "../../node/directory/directory_node.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { haveState, type NodeAdapters, type NodeParts, type OpenNode, systemNodeParts } from "./node.ts";

/** How many threads may wait for the folders of servers at once; the driver's own files have others. */
const folderThreads = 4;

/**
 * Opens the node service of shared directories, on this machine's kernel and tools. It keeps no state; its lock keeps
 * out another process, which would unmount shares that this one is about to use.
 */
export async function openDirectoryNode(
  config: NodeConfig,
  { clock, log, events }: NodeAdapters,
): Promise<OpenNode> {
  const parts = systemNodeParts(clock, log, events);
  await parts.paths.makeFolder(config.stateDirectory, 0o700);
  const release = await haveState(config.stateDirectory, parts);
  const service = new DirectoryNode(directoryNodeDeps(config, parts, log));
  await service.removeHelpers();
  await service.countPublished();
  const stop = new AbortController();
  let releasing: Promise<void> = Promise.resolve();
  return {
    methods: directoryNodeMethods(service),
    locks: new VolumeLocks(),
    obstacle: () => service.obstacle(),
    start: () => {
      releasing = service.releaseUnused(stop.signal).catch((error) => {
        log.warn("cannot look for unused shares at the start", { reason: messageOf(error) });
      });
    },
    close: async () => {
      stop.abort(new Error("the driver stops"));
      await releasing;
    },
    release,
  };
}

/** Makes the dependencies of a configuration's node service; it makes and changes nothing on the machine. */
export function directoryNodeDeps(config: NodeConfig, parts: NodeParts, notes: NodeNotes): DirectoryNodeDeps {
  const { processes, files, mounts, paths, clock, events } = parts;
  const { nodeId, maxVolumesPerNode, stateDirectory: statePath, topology } = config;
  const filesystems = new SystemFilesystems(processes, { files, clock });
  const onHang = () => events.occurred({ kind: "operation-hung", operation: "file" });
  const timedFiles = new TimedFiles(clock, { threads: folderThreads, onHang });
  const identifier = kernelIdentifier({ files, attributes: new LibcSysfsWriter(), nodeId, notes });
  return {
    nfs: new SystemNfsMounts({ processes, files, clock, mounts, filesystems, timedFiles, identifier }),
    filesystems,
    paths,
    clock,
    events,
    notes,
    settings: { nodeId, maxVolumesPerNode, statePath, topology },
  };
}
