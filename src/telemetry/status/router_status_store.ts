import type { AuditKind } from "../../volume/model/audit_kinds.ts";
import type { ControllerEvent, ControllerEvents } from "../../volume/ports/controller_events.ts";
import { eventText } from "../../volume/rules/event_text.ts";
import type { FolderTotals, Totals } from "../../volume/model/totals.ts";
import type { JudgedHardware } from "../../volume/model/health/hardware.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";
import type { IdentifiedRouter, RouterEvents, RouterLoad } from "../router_metrics.ts";
import { Latencies } from "./recent.ts";
import type { ClaimLookup, RouterStatus, StatusEvent, VolumeStatus } from "./model.ts";

/** Keeps the state of one router's controller. */
export class RouterStatusStore implements RouterEvents, ControllerEvents {
  readonly #name: string;
  readonly #nowMs: () => number;
  readonly #report: (statusEvent: StatusEvent) => void;
  readonly #latencies = new Latencies();
  readonly #unwell = new Map<string, readonly HealthProblem[]>();
  #audit: RouterStatus["audit"];
  #hardware: JudgedHardware | undefined;
  #session: { state: string; sinceMs: number; reason: string | undefined };
  #breaker: { state: string; sinceMs: number; cause: string | undefined };
  #router: IdentifiedRouter | undefined;
  #load: () => RouterLoad = () => ({ waiting: 0, running: 0 });
  #check: { readonly totals: Totals; readonly atMs: number } | undefined;

  /** @param nowMs the time, in milliseconds since the Unix epoch */
  constructor(name: string, nowMs: () => number, report: (statusEvent: StatusEvent) => void) {
    this.#name = name;
    this.#nowMs = nowMs;
    this.#report = report;
    this.#session = { state: "idle", sinceMs: nowMs(), reason: undefined };
    this.#breaker = { state: "closed", sinceMs: nowMs(), cause: undefined };
  }

  command({ outcome, ms }: Parameters<RouterEvents["command"]>[0]): void {
    if (outcome !== "not-run") this.#latencies.add(ms);
  }

  connection({ state, reason }: Parameters<RouterEvents["connection"]>[0]): void {
    this.#session = { state, sinceMs: this.#nowMs(), reason };
  }

  breaker({ state, cause }: Parameters<RouterEvents["breaker"]>[0]): void {
    // Also called for each failed attempt.
    const sinceMs = state === this.#breaker.state ? this.#breaker.sinceMs : this.#nowMs();
    this.#breaker = { state, sinceMs, cause };
  }

  /** Why calls are refused at once, for people; undefined while they are not. */
  get refusing(): string | undefined {
    const { state, cause } = this.#breaker;
    return state === "closed" ? undefined : `${this.#name}: ${cause ?? "it does not answer"}`;
  }

  identified(router: IdentifiedRouter): void {
    this.#router = router;
  }

  load(read: () => RouterLoad): void {
    this.#load = read;
  }

  occurred(event: ControllerEvent): void {
    if (event.kind === "audited") return this.#keepAudit(event.counts);
    if (event.kind === "hardware-read") {
      this.#hardware = event.read;
      return;
    }
    if (event.kind === "inventory-read") return this.#keepTotals(event.totals, event.atMs);
    const { type, reason, message } = eventText(event);
    const volumeId = "volumeId" in event ? event.volumeId : undefined;
    const warning = type === "Warning";
    this.#report({ atMs: this.#nowMs(), warning, reason, message, volumeId, router: this.#name });
    if (event.kind !== "health") return;
    if (event.problems.length === 0) this.#unwell.delete(event.volumeId);
    else this.#unwell.set(event.volumeId, event.problems);
  }

  #keepAudit(counts: ReadonlyMap<AuditKind, number> | undefined): void {
    this.#audit = counts && { atMs: this.#nowMs(), found: Object.fromEntries(counts) };
    // A controller that does not lead gets no health, and its earlier one is out of date.
    if (counts === undefined) this.#unwell.clear();
  }

  #keepTotals(totals: Totals, atMs: number): void {
    const before = this.#check?.totals.folders;
    const folders = totals.withSnapshots
      ? totals.folders
      : totals.folders.map((folder) => withSnapshotsOf(before, folder));
    this.#check = { totals: { ...totals, folders }, atMs };
  }

  /** This cluster's volumes from the last read. */
  get volumes(): readonly VolumeStatus[] {
    return (this.#check?.totals.volumes ?? []).map((volume) => ({
      ...volume,
      router: this.#name,
      problems: this.#unwell.get(volume.id) ?? [],
    }));
  }

  /** @param address the router's address, for people */
  read(address: string, claimOf: ClaimLookup): RouterStatus {
    const folders = this.#check?.totals.folders ?? [];
    return {
      name: this.#name,
      address,
      version: this.#router?.version,
      board: this.#router?.board,
      sshExploited: this.#router?.sshExploited ?? false,
      session: this.#session.state,
      sessionSinceAtMs: this.#session.sinceMs,
      sessionReason: this.#session.reason,
      breaker: this.#breaker.state,
      breakerSinceAtMs: this.#breaker.sinceMs,
      breakerCause: this.#breaker.cause,
      ...this.#load(),
      latency: this.#latencies.read(),
      readAtMs: this.#check?.atMs,
      folders: folders.map((folder) => {
        const { labelTakenBy } = folder.pool ?? {};
        return labelTakenBy === undefined ? folder : { ...folder, labelClaim: claimOf(labelTakenBy) };
      }),
      hardware: this.#hardware,
      audit: this.#audit,
    };
  }
}

/** A read of disks alone keeps the earlier values of snapshots. */
function withSnapshotsOf(before: readonly FolderTotals[] | undefined, folder: FolderTotals): FolderTotals {
  const snapshotBytes = before?.find(({ basePath }) => basePath === folder.basePath)?.pool?.snapshotBytes;
  if (folder.pool === undefined || snapshotBytes === undefined) return folder;
  return { ...folder, pool: { ...folder.pool, snapshotBytes } };
}
