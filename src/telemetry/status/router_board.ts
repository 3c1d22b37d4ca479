import type { Figures, FolderFigures, VolumeFigures } from "../../volume/figures.ts";
import type { RouterEvents, RouterLoad } from "../router_metrics.ts";
import { Courses } from "./courses.ts";
import type { RouterStatus } from "./status.ts";

/** Keeps what is known of one router. */
export class RouterBoard implements RouterEvents {
  readonly #commands = new Courses();
  readonly #nowMs: () => number;
  #session: { state: string; sinceMs: number; reason: string | undefined };
  #breaker: { state: string; sinceMs: number; cause: string | undefined };
  #router: { readonly version: string; readonly board: string } | undefined;
  #load: () => RouterLoad = () => ({ waiting: 0, running: 0 });
  #look: { readonly figures: Figures; readonly atMs: number } | undefined;

  /** @param nowMs the time, in milliseconds since the Unix epoch */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#session = { state: "idle", sinceMs: nowMs(), reason: undefined };
    this.#breaker = { state: "closed", sinceMs: nowMs(), cause: undefined };
  }

  command({ kind, outcome, ms }: Parameters<RouterEvents["command"]>[0]): void {
    this.#commands.add(kind, outcome === "not-run" ? undefined : ms, outcome === "ended");
  }

  connection({ state, reason }: Parameters<RouterEvents["connection"]>[0]): void {
    this.#session = { state, sinceMs: this.#nowMs(), reason };
  }

  breaker({ state, cause }: Parameters<RouterEvents["breaker"]>[0]): void {
    // It is told of each failed try as well.
    const sinceMs = state === this.#breaker.state ? this.#breaker.sinceMs : this.#nowMs();
    this.#breaker = { state, sinceMs, cause };
  }

  identified(router: { readonly version: string; readonly board: string }): void {
    this.#router = router;
  }

  load(read: () => RouterLoad): void {
    this.#load = read;
  }

  /** A look at the router has shown this. */
  looked(figures: Figures, atMs: number): void {
    const before = this.#look?.figures.folders;
    const folders = figures.withSnapshots
      ? figures.folders
      : figures.folders.map((folder) => withSnapshotsOf(before, folder));
    this.#look = { figures: { ...figures, folders }, atMs };
  }

  /** This cluster's volumes as they were seen last. */
  get volumes(): readonly VolumeFigures[] {
    return this.#look?.figures.volumes ?? [];
  }

  read(name: string, address: string): RouterStatus {
    return {
      name,
      address,
      version: this.#router?.version,
      board: this.#router?.board,
      session: this.#session.state,
      sessionSinceAtMs: this.#session.sinceMs,
      sessionReason: this.#session.reason,
      breaker: this.#breaker.state,
      breakerSinceAtMs: this.#breaker.sinceMs,
      breakerCause: this.#breaker.cause,
      ...this.#load(),
      latency: this.#commands.readAll(),
      commands: this.#commands.read(),
      lookedAtMs: this.#look?.atMs,
      folders: this.#look?.figures.folders ?? [],
    };
  }
}

/** A look at disks alone leaves what was seen of snapshots before. */
function withSnapshotsOf(before: readonly FolderFigures[] | undefined, folder: FolderFigures): FolderFigures {
  const snapshotBytes = before?.find(({ basePath }) => basePath === folder.basePath)?.pool?.snapshotBytes;
  if (folder.pool === undefined || snapshotBytes === undefined) return folder;
  return { ...folder, pool: { ...folder.pool, snapshotBytes } };
}
