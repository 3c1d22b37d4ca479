import { VolumeError } from "../../volume/errors.ts";
import { formatKnown, type KnownContent, parseKnown } from "../../volume/model/staging/state_file.ts";
import type { Paths } from "../../volume/ports/node_ports.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { idsOf, stateFileName } from "./state_file_name.ts";

/** How many files a node keeps, and how many go at once beyond that: to find the first ones takes reading all. */
const defaultLimits = { maxFiles: 20_000, spareFiles: 1_000 };

/** What keeps a node's state. */
export interface StateAdapters {
  readonly paths: Paths;
  readonly clock: Clock;
  /** See `NodeSettings.statePath`. */
  readonly statePath: string;
  readonly notes?: { warn(message: string, fields: Readonly<Record<string, unknown>>): void } | undefined;
}

/**
 * What this node knows of what lies on volumes that it has unstaged: one file a volume, about one epoch. A file ends with
 * the stage of another epoch. Of a volume that is deleted or goes to another node it stays, because a node is told
 * neither, until there are too many.
 */
export class KnownStore {
  readonly #adapters: StateAdapters;
  readonly #folder: string;
  readonly #limits: typeof defaultLimits;

  constructor(adapters: StateAdapters, limits = defaultLimits) {
    this.#adapters = adapters;
    this.#folder = `${adapters.statePath}/known`;
    this.#limits = limits;
  }

  /**
   * What is known of the volume; undefined when nothing is.
   *
   * @throws {VolumeError} precondition when the file is damaged
   */
  async find(volumeId: string): Promise<KnownContent | undefined> {
    const path = this.#path(volumeId);
    const text = await this.#adapters.paths.readFile(path);
    return text === undefined ? undefined : parseKnown(text, volumeId, path);
  }

  /** Writes and syncs what is known of a volume, in place of what was. */
  async keep(known: Omit<KnownContent, "keptMs">): Promise<void> {
    const { paths, clock } = this.#adapters;
    await paths.makeFolder(this.#folder, 0o700);
    const text = formatKnown({ ...known, keptMs: clock.now() });
    await paths.writeFile(this.#path(known.volumeId), text, 0o600);
    await this.#removeFirst(known.volumeId);
  }

  /** Removes what is known of one epoch only, or of any other than one. A damaged file stays: nobody knows its epoch. */
  async forget(
    volumeId: string,
    epochs: { readonly only: string } | { readonly but: string },
  ): Promise<void> {
    const known = await this.findUndamaged(volumeId);
    if (known === undefined) return;
    const isMeant = "only" in epochs ? known.epoch === epochs.only : known.epoch !== epochs.but;
    if (isMeant) await this.#adapters.paths.removeFile(this.#path(volumeId));
  }

  /** Like {@linkcode KnownStore.find}, but returns undefined when the file is damaged. */
  async findUndamaged(volumeId: string): Promise<KnownContent | undefined> {
    try {
      return await this.find(volumeId);
    } catch (error) {
      if (VolumeError.is(error, "precondition")) return undefined;
      throw error;
    }
  }

  /** Removes the files that were written first, damaged ones before all others, once there are too many. */
  async #removeFirst(butOf: string): Promise<void> {
    const { paths, notes } = this.#adapters;
    const ids = idsOf(await paths.list(this.#folder));
    const { maxFiles, spareFiles } = this.#limits;
    if (ids.length <= maxFiles) return;
    const dated: { readonly id: string; readonly keptMs: number }[] = [];
    for (const id of ids) {
      if (id !== butOf) dated.push({ id, keptMs: (await this.findUndamaged(id))?.keptMs ?? 0 });
    }
    const first = dated.toSorted((one, other) => one.keptMs - other.keptMs)
      .slice(0, ids.length - maxFiles + spareFiles);
    for (const { id } of first) await paths.removeFile(this.#path(id));
    notes?.warn("forgot what was known of the volumes that were unstaged first: there are too many", {
      forgotten: first.length,
      left: ids.length - first.length,
    });
  }

  #path(volumeId: string): string {
    return `${this.#folder}/${stateFileName(volumeId)}`;
  }
}
