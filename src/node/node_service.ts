import { runLimited } from "../async/deadline.ts";
import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import { assertNodeId } from "../volume/model/ids/ids.ts";
import type { VolumeHealth } from "../volume/model/health/health.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { NodeEvents } from "../volume/ports/node_events.ts";
import type { StorageProblem } from "../volume/rules/health/storage_health.ts";
import { type ExpandRequest, expandVolume } from "./expand.ts";
import { ForgottenVolumes } from "./connections/forgotten_volumes.ts";
import { RecentConnections } from "./connections/recent_connections.ts";
import { Fencing } from "./fencing/fencing.ts";
import { type PublishRequest, publishVolume } from "./publish/publish.ts";
import { settledPublish, settledStage } from "./stage/settled.ts";
import { stageVolume } from "./stage/stage.ts";
import type { StageRequest } from "./stage/wish.ts";
import { StorageHealth } from "./health/storage_health.ts";
import { type VolumeStats, volumeStats } from "./health/stats.ts";
import { type UnpublishRequest, unpublishVolume } from "./publish/unpublish.ts";
import { type UnstageRequest, unstageVolume } from "./stage/unstage.ts";
import { nodeVolumeHealth } from "./health/volume_health.ts";
import { isAnyMounted } from "./mount_table.ts";
import type { NodeDeps } from "./deps.ts";

/** The answer of NodeGetInfo. */
export interface NodeInfo {
  readonly nodeId: string;
  /** 0 leaves the limit to the orchestrator. */
  readonly maxVolumesPerNode: number;
  /** The topology segments; empty where none are configured. */
  readonly topology: Readonly<Record<string, string>>;
}

/** How long the kernel may take to load a transport, in milliseconds. */
const obstacleMs = 10_000;

/**
 * A node's whole work on volumes. It reads everything from the kernel and the state files. It keeps only an answer for
 * a few seconds, and what targets offered last.
 *
 * Only one changing method may run for a volume at a time. The caller holds the volume's lock until the promise
 * settles, even when the call was cancelled long ago.
 */
export class NodeService {
  readonly #deps: NodeDeps;
  readonly #storage: StorageHealth;
  readonly #recent: RecentConnections;
  /** What is known of targets that have withdrawn volumes. */
  readonly fencing: Fencing;
  /** Volumes that the kubelet may have forgotten over a restart. */
  readonly forgotten: ForgottenVolumes;

  /** @throws {VolumeError} invalid when the node id has another form */
  constructor(deps: NodeDeps) {
    assertNodeId(deps.settings.nodeId);
    this.#deps = deps;
    this.#storage = new StorageHealth(deps);
    this.#recent = new RecentConnections(deps);
    this.fencing = new Fencing(deps);
    this.forgotten = new ForgottenVolumes(deps, this.fencing);
  }

  /** Reports the volumes that are staged already, so that a restart does not look like an empty node. */
  async countStaged(): Promise<void> {
    for (const { volumeId, here: { staged } } of await this.#deps.stagingStore.all()) {
      this.#deps.events.occurred({ kind: "staged", volumeId, staged });
    }
  }

  /**
   * Why this node can reach no volume right now, and what a person can do about it; undefined when nothing prevents it,
   * for example because the kernel has just loaded the transport.
   */
  async obstacle(): Promise<string | undefined> {
    const { clock, connector } = this.#deps;
    const limit = { name: "obstacle", timeoutMs: obstacleMs, signal: new AbortController().signal };
    return await runLimited(clock, limit, (context) => connector.obstacle(context)).catch(messageOf);
  }

  /** Parses a part of a request to stage: what is wrong with it is as final as a failure of the stage itself. */
  async parseForStage<T>(
    at: Pick<StageRequest, "volumeId" | "stagingPath">,
    context: CallContext,
    parse: () => T,
  ): Promise<T> {
    return await settledStage(this.#deps, at, context, parse);
  }

  /** Like {@linkcode NodeService.parseForStage}, for a request to publish. */
  async parseForPublish<T>(targetPath: string, context: CallContext, parse: () => T): Promise<T> {
    return await settledPublish(this.#deps, targetPath, context, parse);
  }

  /** See {@linkcode stageVolume}. */
  async stage(request: StageRequest, context: CallContext): Promise<void> {
    await this.#changing(request, () => stageVolume(this.#deps, this.fencing, request, context));
  }

  /** See {@linkcode unstageVolume}. */
  async unstage(request: UnstageRequest, context: CallContext): Promise<void> {
    await this.#changing(request, () => unstageVolume(this.#deps, this.fencing, request, context));
    this.forgotten.gone(request.volumeId);
  }

  /**
   * For an unstage, or an unpublish of that target, that has to wait for another call on the volume: see {@linkcode
   * Fencing.forceDisconnectPastLock}. It never fails, because the call is retried.
   */
  async releaseWhileBusy(volumeId: string, context: CallContext, targetPath?: string): Promise<void> {
    try {
      await this.fencing.forceDisconnectPastLock(volumeId, context, targetPath);
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      this.#deps.notes?.warn("cannot check whether a busy volume is fenced", {
        volumeId,
        reason: error.message,
        requestId: context.requestId,
      });
    }
  }

  /** See {@linkcode publishVolume}. */
  async publish(request: PublishRequest, context: CallContext): Promise<void> {
    await this.#changing(request, () => publishVolume(this.#deps, this.fencing, request, context));
  }

  /** See {@linkcode unpublishVolume}. */
  async unpublish(request: UnpublishRequest, context: CallContext): Promise<void> {
    await this.#changing(request, () => unpublishVolume(this.#deps, this.fencing, request, context));
  }

  /** Whether nothing is mounted at the path. */
  async isFree(path: string): Promise<boolean> {
    return !await isAnyMounted(this.#deps, [path]);
  }

  /** See {@linkcode volumeStats}. */
  async stats(volumeId: string, volumePath: string, context: CallContext): Promise<VolumeStats> {
    return await volumeStats(this.#deps, volumeId, volumePath, context);
  }

  /** See {@linkcode nodeVolumeHealth}. */
  async volumeHealth(volumeId: string, context: CallContext): Promise<VolumeHealth> {
    const options = { readsDevice: true, recent: this.#recent };
    return await nodeVolumeHealth(this.#deps, volumeId, context, options);
  }

  /** See {@linkcode StorageHealth}. */
  async storageHealth(context: CallContext): Promise<readonly StorageProblem[]> {
    return await this.#storage.problems(context);
  }

  /** See {@linkcode expandVolume}. */
  async expand(request: ExpandRequest, context: CallContext): Promise<bigint> {
    return await this.#changing(request, () => expandVolume(this.#deps, request, context));
  }

  /**
   * Returns the node's id and limits, at once and without failing: a failure would unregister the driver. Kubelets call
   * it when they register the driver.
   */
  info(): NodeInfo {
    this.forgotten.registered();
    const { nodeId, maxVolumesPerNode, topology = {} } = this.#deps.settings;
    return { nodeId, maxVolumesPerNode, topology };
  }

  async #changing<T>({ volumeId }: { readonly volumeId: string }, action: () => Promise<T>): Promise<T> {
    this.forgotten.named(volumeId);
    return await countingMismatches(this.#deps.events, action);
  }
}

/** The longest chain of causes that is followed, so that a cyclic one ends. */
const maxCauses = 8;

/** Runs an action, and counts one mismatch when the action is refused because the device is not provably the volume. */
export async function countingMismatches<T>(events: NodeEvents, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (isMismatch(error)) events.occurred({ kind: "identity-mismatch" });
    throw error;
  }
}

/** A failed undo throws another error, with the mismatch as its cause. */
function isMismatch(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < maxCauses; at = at.cause, depth++) {
    if (VolumeError.is(at, "identity-mismatch")) return true;
  }
  return false;
}
