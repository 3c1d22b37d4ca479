import { auditKinds, foreignKinds } from "../../volume/model/audit_kinds.ts";
import type { AuditFinding } from "../../volume/rules/audit_finding.ts";
import type { Audit } from "../../controller/audit/audit.ts";

/** What became of something that was to be deleted. */
export interface Deletion {
  readonly id: string;
  readonly path: string;
  /** Undefined when it is gone. */
  readonly failed: string | undefined;
}

/** What of an audit is shown: others' disks are counted all the same. */
export function shownFindings({ findings }: Audit, foreign: boolean): readonly AuditFinding[] {
  return foreign ? findings : findings.filter(({ kind }) => !foreignKinds.has(kind));
}

/** An audit as lines of aligned columns. */
export function formatAudit(audit: Audit, foreign: boolean, nowMs: number): string[] {
  const rows = shownFindings(audit, foreign).map((one) => [
    auditKinds[one.kind],
    one.kind,
    one.id,
    ageOf(one, nowMs),
    one.kept === undefined ? "yes" : "no",
    one.path,
    one.kept === undefined ? one.found : `${one.found} (kept: ${one.kept})`,
  ]);
  const header = ["STATE", "KIND", "ID", "AGE", "DELETABLE", "PATH", "FOUND"];
  const widths = header.slice(0, -1).map((_, column) =>
    Math.max(...[header, ...rows].map((row) => row[column]!.length))
  );
  const lines = [header, ...rows].map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")
  );
  return [...rows.length === 0 ? [] : lines, ...foreignLines(audit), summary(audit)];
}

/** An audit and what was deleted, for JSON. */
export function auditJson(
  audit: Audit,
  foreign: boolean,
  deletions: readonly Deletion[],
): Readonly<Record<string, unknown>> {
  const counts = Map.groupBy(audit.findings, ({ kind }) => kind);
  return {
    cluster: audit.cluster,
    counts: Object.fromEntries([...counts].map(([kind, of]) => [kind, of.length])),
    findings: shownFindings(audit, foreign).map(({ kind, id, path, found, sinceSeconds, kept }) => ({
      state: auditKinds[kind],
      kind,
      id,
      path,
      found,
      since: sinceSeconds === undefined ? null : new Date(sinceSeconds * 1000).toISOString(),
      deletable: kept === undefined,
      kept: kept ?? null,
    })),
    deleted: deletions.filter(({ failed }) => failed === undefined).map(({ id, path }) => ({ id, path })),
    failed: deletions.filter(({ failed }) => failed !== undefined),
  };
}

function foreignLines({ findings }: Audit): string[] {
  const counts = Map.groupBy(findings.filter(({ kind }) => foreignKinds.has(kind)), ({ kind }) => kind);
  if (counts.size === 0) return [];
  const words = [...counts].map(([kind, of]) => `${of.length} ${kind}`);
  return [`of others, or nobody knows whose, left alone (--foreign names them): ${words.join(", ")}`];
}

function summary({ findings, cluster }: Audit): string {
  const count = (state: string) => findings.filter(({ kind }) => auditKinds[kind] === state).length;
  const asked = cluster === "read"
    ? "PersistentVolumes and VolumeAttachments were compared"
    : cluster === "none"
    ? "no cluster was asked: PersistentVolumes were not compared"
    : `the cluster could not be asked: ${cluster.unreadable}`;
  return `audit: ${count("problem")} problems, ${count("warning")} warnings, ${
    count("note")
  } notes; ${asked}`;
}

function ageOf({ sinceSeconds }: AuditFinding, nowMs: number): string {
  if (sinceSeconds === undefined) return "-";
  const hours = Math.floor((nowMs / 1000 - sinceSeconds) / 3600);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}
