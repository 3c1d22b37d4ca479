import { messageOf } from "../../volume/error_messages.ts";
import type { AuditKind } from "../../volume/model/audit_kinds.ts";
import { type AuditFinding, findingKey, isDue } from "../../volume/rules/audit/finding.ts";
import { type Audit, auditRouter, deleteOrphan } from "./audit.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { ControllerDeps } from "../deps.ts";
import { PeriodicLoop } from "../periodic_loop.ts";

/** What an operator sets for the audits of a controller. */
export interface AuditLoopSettings {
  /** How often it looks, in milliseconds; 0 never. */
  readonly intervalMs: number;
  /** What has been used by nobody for so long, and had no owner in two audits, is deleted, in milliseconds; undefined: nothing. */
  readonly deleteOlderThanMs: number | undefined;
}

/** Each audit lists much of the cluster. */
const period = {
  ...{ name: "audit", spreadMs: 240_000, timeoutMs: 300_000 },
  complaint: "the audit failed; retrying",
};

/** So few are deleted in one audit that a person who sees it can stop it. */
const maxDeletions = 5;

/** Looks from time to time for what lies on the router without an owner. */
export class AuditLoop extends PeriodicLoop {
  readonly #deps: ControllerDeps;
  readonly #settings: AuditLoopSettings;
  /** What the last audit found: since when something has had no owner no record tells. */
  #before: ReadonlySet<string> = new Set();

  constructor(deps: ControllerDeps, settings: AuditLoopSettings) {
    super(deps, { ...period, intervalMs: settings.intervalMs });
    this.#deps = deps;
    this.#settings = settings;
  }

  protected async turn(context: CallContext): Promise<undefined> {
    const deps = this.#deps;
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
  }

  protected forget(): void {
    this.#before = new Set();
  }

  protected ended(): void {
    this.#deps.events.occurred({ kind: "audited", counts: undefined });
  }

  async #delete(
    finding: AuditFinding,
    { view }: Audit,
    context: CallContext,
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
