import { runLimited, withDeadline } from "../../async/deadline.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { assertNodeId } from "../../volume/model/ids/ids.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import type { FilesystemStats } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import type { StorageProblem } from "../../volume/rules/health/storage_health.ts";
import type { NodeInfo } from "../node_service.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import { directoryHealth, type HealthRequest, shareProblems } from "./health.ts";
import { publishDirectory, type PublishDirectoryRequest, settledAt } from "./publish.ts";
import { PublishedDirectories } from "./published.ts";
import { SharedMounts } from "./shared_mounts.ts";
import { directoryStats } from "./stats.ts";
import { unpublishDirectory, type VolumePath } from "./unpublish.ts";

/** How long the kernel may take to load a module, in milliseconds. */
const obstacleMs = 10_000;
/** How long the look for unused shares at a start may take, in milliseconds. */
const releaseMs = 60_000;
/** How long all reads of a health together may take. */
const healthMs = 15_000;

/**
 * The node service of shared directories. It keeps no state: what is mounted is in the mount table, where a restarted
 * service finds it. Only one call may change a volume at a time; see `VolumeLocks`.
 */
export class DirectoryNode {
  readonly #deps: DirectoryNodeDeps;
  readonly #shares: SharedMounts;
  readonly #published: PublishedDirectories;

  /** @throws {VolumeError} invalid when the node id has another form */
  constructor(deps: DirectoryNodeDeps) {
    assertNodeId(deps.settings.nodeId);
    this.#deps = deps;
    this.#shares = new SharedMounts(deps);
    this.#published = new PublishedDirectories(deps, this.#shares);
  }

  /** Removes what a killed process has left half made. No call may be running. */
  async removeHelpers(): Promise<void> {
    await this.#shares.removeHelpers();
  }

  /** Reports the directories that are published already, so that a restart does not look like an empty node. */
  async countPublished(): Promise<void> {
    await this.#published.report();
  }

  /** Unmounts the shares that a crash has left without a volume. */
  async releaseUnused(signal: AbortSignal): Promise<void> {
    const limit = { name: "release", timeoutMs: releaseMs, signal };
    await runLimited(this.#deps.clock, limit, (context) => this.#shares.releaseUnused(context));
  }

  /** Why this node can mount nothing right now, and what a person can do about it; undefined when it can. */
  async obstacle(): Promise<string | undefined> {
    const limit = { name: "obstacle", timeoutMs: obstacleMs, signal: new AbortController().signal };
    return await runLimited(this.#deps.clock, limit, (context) => this.#deps.nfs.obstacle(context))
      .catch(messageOf);
  }

  /** Parses a part of a request to publish: what is wrong with it is as final as a failure of the publish itself. */
  async parseForPublish<T>(targetPath: string, context: CallContext, parse: () => T): Promise<T> {
    return await settledAt(this.#deps, targetPath, context, parse);
  }

  /** See {@linkcode publishDirectory}. */
  async publish(request: PublishDirectoryRequest, context: CallContext): Promise<void> {
    await publishDirectory(this.#deps, this.#shares, request, context);
    await this.#published.report();
  }

  /** See {@linkcode unpublishDirectory}. */
  async unpublish(volume: VolumePath, context: CallContext): Promise<void> {
    await unpublishDirectory(this.#deps, this.#shares, volume, context);
    await this.#published.report();
  }

  /** Whether nothing is mounted at the path. */
  async isFree(path: string): Promise<boolean> {
    const { nfs, paths } = this.#deps;
    return mountsAt(await nfs.table(), await paths.mountPoint(path)).length === 0;
  }

  /** See {@linkcode directoryStats}. */
  async stats(volume: VolumePath, context: CallContext): Promise<FilesystemStats> {
    return await directoryStats(this.#deps, volume, context);
  }

  /** See {@linkcode directoryHealth}. */
  async volumeHealth(request: HealthRequest, context: CallContext): Promise<VolumeHealth> {
    const what = `look after the volume: volume=${request.volumeId}`;
    const look = (limited: CallContext) => directoryHealth(this.#deps, request, limited);
    return await withDeadline(this.#deps.clock, context, healthMs, what, look);
  }

  /** See {@linkcode shareProblems}. */
  async storageHealth(context: CallContext): Promise<readonly StorageProblem[]> {
    const look = (limited: CallContext) => shareProblems(this.#deps, this.#shares, limited);
    return await withDeadline(this.#deps.clock, context, healthMs, "look after the shares", look);
  }

  /** The node's id and limits. */
  info(): NodeInfo {
    const { nodeId, maxVolumesPerNode, topology = {} } = this.#deps.settings;
    return { nodeId, maxVolumesPerNode, topology };
  }
}
