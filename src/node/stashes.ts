import type { Paths } from "../volume/ports.ts";
import { formatStash, parseStash, type Stash } from "../volume/staging.ts";
import type { NodeWorld } from "./world.ts";

/** The state files of a node, one a volume. */
export class Stashes {
  readonly #paths: Paths;
  readonly #folder: string;

  constructor(world: NodeWorld) {
    this.#paths = world.paths;
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

  /** Writes and syncs; answers what it wrote. */
  async write(stash: Stash): Promise<Stash> {
    await this.#paths.makeFolder(this.#folder, 0o700);
    await this.#paths.writeFile(this.#path(stash.volumeId), formatStash(stash), 0o600);
    return stash;
  }

  /** OK when there is none. */
  async remove(volumeId: string): Promise<void> {
    await this.#paths.removeFile(this.#path(volumeId));
  }

  #path(volumeId: string): string {
    return `${this.#folder}/${volumeId}.json`;
  }
}
