import { messageOf } from "../../volume/error_messages.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/**
 * Reports the directories that are published, for the metrics, which count them with the staged volumes. They stand in
 * the mount table, without the ids of their volumes: so a directory is counted by its source, and once if two static
 * volumes name it.
 */
export class PublishedDirectories {
  readonly #deps: Pick<DirectoryNodeDeps, "events" | "notes">;
  readonly #shares: Pick<SharedMounts, "sources">;
  #reported: ReadonlySet<string> = new Set();

  constructor(deps: Pick<DirectoryNodeDeps, "events" | "notes">, shares: Pick<SharedMounts, "sources">) {
    this.#deps = deps;
    this.#shares = shares;
  }

  /** Reports what has changed since the last time. It never fails. */
  async report(): Promise<void> {
    try {
      const sources = await this.#shares.sources();
      const before = this.#reported;
      this.#reported = sources;
      for (const volumeId of sources.difference(before)) this.#occurred(volumeId, true);
      for (const volumeId of before.difference(sources)) this.#occurred(volumeId, false);
    } catch (error) {
      this.#deps.notes.warn("cannot count the published directories", { reason: messageOf(error) });
    }
  }

  #occurred(volumeId: string, staged: boolean): void {
    this.#deps.events.occurred({ kind: "staged", volumeId, staged });
  }
}
