import { limitCall, runLimited } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { isVolumeId, poolOf } from "../../volume/model/ids/ids.ts";
import { namesById, parsePlates, platesFolder, type StoredPlate } from "../../volume/model/name_plates.ts";
import type { Inventory, Pool } from "../../volume/model/inventory.ts";
import type { ReconciledCluster } from "../../volume/ports/cluster_view.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertShown, whyPoolUnreadable } from "../../volume/rules/absence.ts";
import {
  maxPlateChanges,
  maxPlates,
  planPlates,
  plateLeftovers,
  type PlatePlan,
} from "../../volume/rules/name_plates.ts";
import type { ControllerDeps } from "../deps.ts";
import { ownAndLegacyFiles } from "../inventory.ts";

/** How long reading and writing a few plates may take, in milliseconds. */
const writeMs = 60_000;

/** How long a list of plates may take for what people are to read, in milliseconds. */
const readMs = 10_000;

/**
 * Keeps empty folders on the router whose names say what people call volumes and snapshots, for the day on which the cluster
 * is gone. Hints for people: nothing waits for them, and what goes wrong with them changes nothing else.
 */
export class NamePlateWriter {
  readonly #deps: ControllerDeps;
  readonly #cluster: Pick<ReconciledCluster, "names">;
  readonly #isWanted: boolean;
  #complaint: string | undefined;
  #saidLimit = false;
  /** Whether no plate is wanted, and none was there. */
  #isOver = false;
  /** See `PlateView.skip`. */
  #skip = 0;
  #running: Promise<void> | undefined;

  /** @param isWanted whether there are to be plates; if not, earlier ones are removed */
  constructor(deps: ControllerDeps, cluster: Pick<ReconciledCluster, "names">, isWanted: boolean) {
    this.#deps = deps;
    this.#cluster = cluster;
    this.#isWanted = isWanted;
  }

  /**
   * Begins to {@linkcode write} beside everything else, unless that is still under way. It ends with the signal.
   *
   * @param inventory of a round that is over, from before its lists of the cluster
   */
  begin(inventory: Inventory, signal: AbortSignal): void {
    if (!this.#isOver) {
      this.#running ??= this.write(inventory, signal).finally(() => this.#running = undefined);
    }
  }

  /** Waits until nothing of it is under way. */
  async ended(): Promise<void> {
    await this.#running;
  }

  /**
   * Makes a few of the missing plates, and then removes a few that nothing needs. One command where nothing is to do. Logs what
   * fails, once, and leaves it to the next time.
   */
  async write(inventory: Inventory, signal: AbortSignal): Promise<void> {
    const limits = { name: "names", timeoutMs: writeMs, signal, aside: true } as const;
    let complaint: string | undefined;
    try {
      complaint = await runLimited(this.#deps.clock, limits, (context) => this.#write(inventory, context));
    } catch (error) {
      if (signal.aborted) return;
      complaint = messageOf(error);
    }
    if (complaint !== undefined && complaint !== this.#complaint) {
      this.#deps.notes.warn("cannot keep the name plates on the router; retrying", { reason: complaint });
    }
    this.#complaint = complaint;
  }

  /** Returns why the router did not do all. */
  async #write(inventory: Inventory, context: CallContext): Promise<string | undefined> {
    const { store, settings: { cluster, basePaths, settleMs } } = this.#deps;
    const { files, pools } = await store.files(platesFolder(cluster), context);
    const isWanted = this.#isWanted;
    if (!isWanted && files.length === 0) {
      // A router that has just booted may not show them yet.
      this.#isOver = inventory.upMs >= settleMs && basePaths.every((base) => isMounted(pools, base));
      return undefined;
    }
    const names = await this.#cluster.names(context);
    const view = { cluster, basePaths, pools, disks: inventory.volumes, files, names };
    const skip = this.#skip;
    const plan = planPlates({ ...view, isWanted, skip });
    this.#reportLimit(plan);
    const { add, replaced } = plan;
    const { paths, complaint } = await this.#idlePaths(plan, inventory, context);
    const remove = [...replaced, ...paths].slice(0, Math.max(0, maxPlateChanges - add.length));
    if (add.length + remove.length === 0) return complaint;
    const refusal = await store.changeFolders({ add, remove }, context);
    this.#skip = refusal === undefined ? 0 : skip + add.length;
    return refusal ?? complaint;
  }

  /**
   * The plates and folders that nothing needs, or why nobody knows of the plates: others are made all the same. A router that has
   * just booted may show neither disks nor images.
   */
  async #idlePaths(
    { idle, empty }: PlatePlan,
    inventory: Inventory,
    context: CallContext,
  ): Promise<{ readonly paths: readonly string[]; readonly complaint?: string }> {
    const { settings: { cluster, basePaths, settleMs } } = this.#deps;
    if (inventory.upMs < settleMs) return { paths: [] };
    if (idle.length === 0) return { paths: empty };
    try {
      const files = await ownAndLegacyFiles({ ...this.#deps, context }, inventory);
      assertShown(files, basePaths, settleMs);
      const [odd] = basePaths.flatMap((base) => whyPoolUnreadable(files, base) ?? []);
      // Only a volume's plate is sure to lie on the pool of its image.
      const judged = idle.filter(({ id, path }) =>
        odd === undefined || isVolumeId(id) && isMounted(files.pools, path)
      );
      const paths = [...plateLeftovers(judged, files.files, cluster), ...empty];
      if (judged.length === idle.length) return { paths };
      return { paths, complaint: `the router's row of a pool cannot be read: ${odd}` };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      return { paths: empty, complaint: error.message };
    }
  }

  #reportLimit({ isOverLimit }: PlatePlan): void {
    if (isOverLimit && !this.#saidLimit) {
      this.#deps.notes.warn("there are more volumes and snapshots than name plates on the router", {
        most: maxPlates,
      });
    }
    this.#saidLimit ||= isOverLimit;
  }
}

function isMounted(pools: readonly Pool[], path: string): boolean {
  return pools.some(({ mountPoint }) => mountPoint === poolOf(path));
}

/**
 * What people call volumes and snapshots, by id, for texts; nothing where it cannot be read, or not soon. One command.
 *
 * @throws {VolumeError} cancelled, deadline when the call ends
 */
export async function readNames(
  deps: Pick<ControllerDeps, "store" | "settings" | "clock">,
  context: CallContext,
): Promise<ReadonlyMap<string, string>> {
  try {
    return namesById(await readPlates(deps, context));
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    return new Map();
  }
}

/** Which name plates are read, and for how long. */
export interface PlateReading {
  /** @default {the allowed ones} */
  readonly folders?: "all";
  /** In milliseconds. @default {10000} */
  readonly limitMs?: number;
}

/**
 * The name plates of this cluster on the router. One command.
 *
 * @throws {VolumeError} unavailable when the router cannot be asked, or does not answer soon; deadline when the call ends
 */
export async function readPlates(
  { store, clock, settings: { cluster, basePaths } }: Pick<ControllerDeps, "store" | "settings" | "clock">,
  context: CallContext,
  { folders, limitMs = readMs }: PlateReading = {},
): Promise<readonly StoredPlate[]> {
  const late = new VolumeError(
    "unavailable",
    `the router did not list the name plates within ${limitMs / 1000} s`,
  );
  using limited = limitCall(clock, { ...context, aside: true }, limitMs, late);
  const { files } = await store.files(platesFolder(cluster), limited.context);
  return parsePlates(files, cluster, folders === "all" ? undefined : basePaths);
}
