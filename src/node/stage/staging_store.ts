import { VolumeError } from "../../volume/errors.ts";
import { decodeHandle, encodeHandle } from "../../volume/model/ids.ts";
import type { NodeEvents } from "../../volume/ports/node_events.ts";
import type { Paths } from "../../volume/ports/node_ports.ts";
import {
  formatStagingState,
  parseStagingState,
  type StagingState,
} from "../../volume/model/staging_state.ts";
import type { NodeDeps } from "../deps.ts";

const ending = ".json";

/** Name of a volume's state file. No two volumes share one, and the id can be read from it. */
export function stagingStateName(volumeId: string): string {
  return `${encodeHandle(volumeId)}${ending}`;
}

function idsOf(names: readonly string[]): string[] {
  return names.filter((name) => name.endsWith(ending))
    .map((name) => decodeHandle(name.slice(0, -ending.length)));
}

/** The state files of a node, one a volume. */
export class StagingStore {
  readonly #paths: Paths;
  readonly #events: NodeEvents;
  readonly #folder: string;

  constructor(deps: NodeDeps) {
    this.#paths = deps.paths;
    this.#events = deps.events;
    this.#folder = `${deps.settings.statePath}/volumes`;
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
    this.#events.occurred({ kind: "staged", volumeId: stagingState.volumeId, staged: stagingState.staged });
    if (stagingState.staged && stagingState.device !== undefined) {
      this.#events.occurred({
        kind: "device",
        volumeId: stagingState.volumeId,
        deviceNumber: stagingState.device.deviceNumber,
      });
    }
    return stagingState;
  }

  /** Removes a volume's record. OK when there is none. */
  async remove(volumeId: string): Promise<void> {
    await this.#paths.removeFile(this.#path(volumeId));
    this.#events.occurred({ kind: "staged", volumeId, staged: false });
  }

  async #read(wanted: (volumeId: string) => boolean): Promise<readonly StagingState[]> {
    const ids = idsOf(await this.#paths.list(this.#folder));
    const stagingStore = ids.filter(wanted).map((id) => this.findUndamaged(id));
    return (await Promise.all(stagingStore)).filter((stagingState) => stagingState !== undefined);
  }

  /** The volumes that have a state file, including damaged ones. */
  async ids(): Promise<readonly string[]> {
    return idsOf(await this.#paths.list(this.#folder));
  }

  #path(volumeId: string): string {
    return `${this.#folder}/${stagingStateName(volumeId)}`;
  }
}
