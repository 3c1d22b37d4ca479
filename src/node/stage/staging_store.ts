import { VolumeError } from "../../volume/errors.ts";
import { decodeHandle, encodeHandle } from "../../volume/model/ids.ts";
import type { NodeEvents } from "../../volume/ports/node_events.ts";
import type { Paths } from "../../volume/ports/node_ports.ts";
import { formatStash, parseStash, type Stash } from "../../volume/model/staging_state.ts";
import type { NodeWorld } from "../deps.ts";

const ending = ".json";

/** Name of a volume's state file: no two volumes share one, and the id can be read from it. */
export function stashName(volumeId: string): string {
  return `${encodeHandle(volumeId)}${ending}`;
}

function idsOf(names: readonly string[]): string[] {
  return names.filter((name) => name.endsWith(ending))
    .map((name) => decodeHandle(name.slice(0, -ending.length)));
}

/** The state files of a node, one a volume. */
export class Stashes {
  readonly #paths: Paths;
  readonly #events: NodeEvents;
  readonly #folder: string;

  constructor(world: NodeWorld) {
    this.#paths = world.paths;
    this.#events = world.events;
    this.#folder = `${world.settings.statePath}/volumes`;
  }

  /**
   * What this node remembers of the volume; undefined when it knows nothing of it.
   *
   * @throws {VolumeError} precondition when the state file is damaged
   */
  async find(volumeId: string): Promise<Stash | undefined> {
    const path = this.#path(volumeId);
    const text = await this.#paths.readFile(path);
    return text === undefined ? undefined : parseStash(text, volumeId, path);
  }

  /** As {@linkcode Stashes.find}, but undefined when the state file is damaged. */
  async findUndamaged(volumeId: string): Promise<Stash | undefined> {
    try {
      return await this.find(volumeId);
    } catch (error) {
      if (VolumeError.is(error, "precondition")) return undefined;
      throw error;
    }
  }

  /** What this node remembers of all other volumes. A damaged state file is left out: it must not stop anybody else. */
  async others(volumeId: string): Promise<readonly Stash[]> {
    return await this.#read((id) => id !== volumeId);
  }

  /** What this node remembers of all volumes, damaged state files left out. */
  async all(): Promise<readonly Stash[]> {
    return await this.#read(() => true);
  }

  /** Writes and syncs; answers what it wrote. */
  async write(stash: Stash): Promise<Stash> {
    await this.#paths.makeFolder(this.#folder, 0o700);
    await this.#paths.writeFile(this.#path(stash.volumeId), formatStash(stash), 0o600);
    this.#events.happened({ kind: "staged", volumeId: stash.volumeId, staged: stash.staged });
    if (stash.staged && stash.device !== undefined) {
      this.#events.happened({
        kind: "device",
        volumeId: stash.volumeId,
        deviceNumber: stash.device.deviceNumber,
      });
    }
    return stash;
  }

  /** OK when there is none. */
  async remove(volumeId: string): Promise<void> {
    await this.#paths.removeFile(this.#path(volumeId));
    this.#events.happened({ kind: "staged", volumeId, staged: false });
  }

  async #read(wanted: (volumeId: string) => boolean): Promise<readonly Stash[]> {
    const ids = idsOf(await this.#paths.list(this.#folder));
    const stashes = ids.filter(wanted).map((id) => this.findUndamaged(id));
    return (await Promise.all(stashes)).filter((stash) => stash !== undefined);
  }

  /** The volumes of which there is a state file, also a damaged one. */
  async ids(): Promise<readonly string[]> {
    return idsOf(await this.#paths.list(this.#folder));
  }

  #path(volumeId: string): string {
    return `${this.#folder}/${stashName(volumeId)}`;
  }
}
