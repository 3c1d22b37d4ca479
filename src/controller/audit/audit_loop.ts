import { messageOf } from "../../volume/errors.ts";
import type { AuditKind } from "../../volume/model/audit_kinds.ts";
import { type AuditFinding, findingKey, isDue } from "../../volume/rules/audit/finding.ts";
import { type Audit, auditRouter, deleteOrphan } from "./audit.ts";
import { runLimited } from "../../async/deadline.ts";
import type { ControllerDeps } from "../deps.ts";

/** What an operator sets for the audits of a controller. */
export interface AuditLoopSettings {
  /** How often it looks, in milliseconds; 0 never. */
  readonly intervalMs: number;
  /** What has been used by nobody for so long, and had no owner in two audits, is deleted, in milliseconds; undefined: nothing. */
  readonly deleteOlderThanMs: number | undefined;
}

/** How long one audit may take, in milliseconds. */
const auditMs = 300_000;

/**
 * How long after the start the first audit comes at the earliest, and over how long a time the loops of several routers
 * and controllers spread theirs, in milliseconds: each lists much of the cluster.
 */
const firstMs = 60_000;
const spreadMs = 240_000;

/** So few are deleted in one audit that a person who sees it can stop it. */
const maxDeletions = 5;

/** Looks from time to time for what lies on the router without an owner, beside all calls. */
export class AuditLoop {
  readonly #deps: ControllerDeps;
  readonly #settings: AuditLoopSettings;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** What the last audit found: since when something has had no owner no record tells. */
  #before: ReadonlySet<string> = new Set();

  constructor(deps: ControllerDeps, settings: AuditLoopSettings) {
    this.#deps = deps;
    this.#settings = settings;
  }

  /** Begins to {@linkcode run} until it is closed. */
  start(): void {
    this.#running = this.run(this.#stop.signal);
  }

  /** Ends it, and waits until nothing of it is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the controller stops"));
    await this.#running;
  }

  /**
   * Goes on until the signal ends it; the first audit comes when the controller has settled in, at a random time. What an earlier run has
   * found counts for nothing in this one: others may have changed everything in between.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#settings.intervalMs === 0) return;
    this.#before = new Set();
    try {
      await this.#auditOnAndOn(signal);
    } finally {
      this.#deps.events.occurred({ kind: "audited", counts: undefined });
    }
  }

  async #auditOnAndOn(signal: AbortSignal): Promise<void> {
    const { clock, notes, random } = this.#deps;
    const { intervalMs } = this.#settings;
    let waitMs = Math.min(firstMs, intervalMs) + random.fraction() * Math.min(spreadMs, intervalMs);
    while (!signal.aborted) {
      try {
        await clock.sleep(waitMs, signal);
        await this.#auditOnce(signal);
      } catch (error) {
        if (signal.aborted) return;
        const reason = messageOf(error);
        notes.warn("the audit failed; retrying", { reason });
      }
      waitMs = intervalMs;
    }
  }

  async #auditOnce(signal: AbortSignal): Promise<void> {
    const deps = this.#deps;
    await runLimited(deps.clock, { name: "audit", timeoutMs: auditMs, signal }, async (context) => {
      const audit = await auditRouter(deps, { vouched: false }, context);
      deps.events.occurred({ kind: "audited", counts: countKinds(audit.findings) });
      const before = this.#before;
      this.#before = new Set(audit.findings.map(judgedAs));
      const { deleteOlderThanMs } = this.#settings;
      if (deleteOlderThanMs === undefined) return;
      if (audit.reasonAgainstAge !== undefined) {
        deps.notes.warn("the audit deletes nothing", { reason: audit.reasonAgainstAge });
        return;
      }
      const due = audit.findings.filter((one) =>
        isDue(one, deps.clock.now(), deleteOlderThanMs) && before.has(judgedAs(one))
      );
      for (const finding of due.slice(0, maxDeletions)) await this.#delete(finding, audit, context);
    });
  }

  async #delete(
    finding: AuditFinding,
    { view }: Audit,
    context: Parameters<typeof deleteOrphan>[3],
  ): Promise<void> {
    const { kind, id, path } = finding;
    // A call that changes it knows better; the next audit looks again.
    const release = this.#deps.locks.tryTake([id], "audit");
    if (release === undefined) return;
    try {
      await deleteOrphan(this.#deps, finding, view, context);
      this.#deps.notes.warn("deleted an object without an owner (--orphan-delete-older-than)", {
        kind,
        id,
        path,
      });
    } catch (error) {
      context.signal.throwIfAborted();
      const reason = messageOf(error);
      this.#deps.notes.warn("cannot delete an object without an owner", { kind, id, path, reason });
    } finally {
      release();
    }
  }
}

function judgedAs(finding: AuditFinding): string {
  return `${findingKey(finding)} ${finding.comment ?? ""}`;
}

/** How many findings there are of each kind; of others none. */
export function countKinds(findings: readonly AuditFinding[]): ReadonlyMap<AuditKind, number> {
  const byKind = Map.groupBy(findings, ({ kind }) => kind);
  return new Map([...byKind].map(([kind, of]) => [kind, of.length]));
}
