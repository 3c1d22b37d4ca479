import { VolumeError } from "../../volume/errors.ts";
import { idsOf, stateFileName } from "./state_file_name.ts";
import type { NodeEvents } from "../../volume/ports/node_events.ts";
import type { Paths } from "../../volume/ports/node_ports.ts";
import { usedBytes } from "../../volume/model/staging/intent.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { isToBeKept } from "../../volume/model/staging/content.ts";
import { formatStagingState, parseStagingState } from "../../volume/model/staging/state_file.ts";
import { KnownStore, type StateAdapters } from "./known_store.ts";

/** The state files of a node, one a volume. */
export class StagingStore {
  readonly #paths: Paths;
  readonly #events: NodeEvents;
  readonly #folder: string;
  /** What outlasts a record. */
  readonly known: KnownStore;

  constructor(adapters: StateAdapters & { readonly events: NodeEvents }) {
    this.#paths = adapters.paths;
    this.#events = adapters.events;
    this.#folder = `${adapters.statePath}/volumes`;
    this.known = new KnownStore(adapters);
  }

  /**
   * This node's record of the volume; undefined when there is none.
   *
   * @throws {VolumeError} precondition when the state file is damaged
   */
  async find(volumeId: string): Promise<StagingState | undefined> {
    const path = this.#path(volumeId);
    const text = await this.#paths.readFile(path);
    return text === undefined ? undefined : parseStagingState(text, volumeId, path);
  }

  /** Like {@linkcode StagingStore.find}, but returns undefined when the state file is damaged. */
  async findUndamaged(volumeId: string): Promise<StagingState | undefined> {
    try {
      return await this.find(volumeId);
    } catch (error) {
      if (VolumeError.is(error, "precondition")) return undefined;
      throw error;
    }
  }

  /** This node's records of all other volumes, without damaged ones: they must not stop other volumes. */
  async others(volumeId: string): Promise<readonly StagingState[]> {
    return await this.#read((id) => id !== volumeId);
  }

  /** This node's records of all volumes, without damaged ones. */
  async all(): Promise<readonly StagingState[]> {
    return await this.#read(() => true);
  }

  /** Writes and syncs a record, and returns it. */
  async write(stagingState: StagingState): Promise<StagingState> {
    await this.#paths.makeFolder(this.#folder, 0o700);
    await this.#paths.writeFile(this.#path(stagingState.volumeId), formatStagingState(stagingState), 0o600);
    this.#events.occurred({
      kind: "staged",
      volumeId: stagingState.volumeId,
      staged: stagingState.here.staged,
    });
    if (stagingState.here.staged && stagingState.here.device !== undefined) {
      this.#events.occurred({
        kind: "device",
        volumeId: stagingState.volumeId,
        deviceNumber: stagingState.here.device.deviceNumber,
      });
    }
    return stagingState;
  }

  /**
   * Removes the record of a volume that is not on this node any more. What it knows of what lies on the volume is written
   * to {@linkcode KnownStore} before, if the next stage of the epoch must know it. A node that dies in between has both,
   * and then the record counts.
   */
  async end({ volumeId, intent: { epoch, mayFormat }, content }: StagingState): Promise<void> {
    const { seenOn: _seenOn, ...known } = content;
    if (mayFormat && isToBeKept(known)) await this.known.keep({ volumeId, epoch, content: known });
    else await this.known.forget(volumeId, { only: epoch });
    await this.remove(volumeId);
  }

  /** Like {@linkcode StagingStore.end}, after a stage that failed: the next one must refuse the same device for the same reason. */
  async endFailed({ volumeId, intent, content, here: { device } }: StagingState): Promise<void> {
    const { epoch } = intent;
    // It may have grown since it was seen.
    const seenOn = device && { ...device, sizeBytes: usedBytes(intent) };
    const known = seenOn === undefined ? content : { ...content, seenOn };
    if (isToBeKept(content)) await this.known.keep({ volumeId, epoch, content: known });
    else await this.known.forget(volumeId, { only: epoch });
    await this.remove(volumeId);
  }

  /** Removes a volume's record. OK when there is none. */
  async remove(volumeId: string): Promise<void> {
    await this.#paths.removeFile(this.#path(volumeId));
    this.#events.occurred({ kind: "staged", volumeId, staged: false });
  }

  async #read(wanted: (volumeId: string) => boolean): Promise<readonly StagingState[]> {
    const ids = idsOf(await this.#paths.list(this.#folder));
    const states = ids.filter(wanted).map((id) => this.findUndamaged(id));
    return (await Promise.all(states)).filter((stagingState) => stagingState !== undefined);
  }

  /** The volumes that have a state file, including damaged ones. */
  async ids(): Promise<readonly string[]> {
    return idsOf(await this.#paths.list(this.#folder));
  }

  #path(volumeId: string): string {
    return `${this.#folder}/${stateFileName(volumeId)}`;
  }
}
