import { counted } from "../../volume/model/counted.ts";
import { type Audit, auditRouter, deleteOrphan, refuseByAge } from "../../controller/audit/audit.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import { readNames } from "../../controller/names/name_plates.ts";
import type { ControllerConfig } from "../config/router_settings.ts";
import { systemFiles } from "../config/backends.ts";
import { systemClock } from "../../host/clock.ts";
import { auditKinds, foreignKinds } from "../../volume/model/audit_kinds.ts";
import { type AuditFinding, isDue } from "../../volume/rules/audit/finding.ts";
import { describeUnsoundPool } from "../../volume/rules/array_state.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { type AuditCommandOptions, idOn, readAuditOptions } from "./options.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { withProgress } from "../progress.ts";
import { alignColumns } from "../table.ts";
import { withController } from "../controller_command.ts";

/** The text of `rds-csi audit --help` before the flags. */
export const usage = `Usage: rds-csi audit [flags]

Finds objects on the router without an owner: images, subvolumes and unfinished copies of this cluster without a disk,
exports without a holder, disks without their image or with a damaged record. It also finds pools with a degraded mirror.
In a cluster it finds disks without a PersistentVolume too, and PersistentVolumes without a disk. It counts the disks of
others and leaves them alone. The same holds for an image of the legacy driver without a disk: its name does not say which
cluster owns it.

It deletes nothing by default. --delete removes findings by name, --delete-older-than by age. It never deletes a finding
that is published, exported, named by a PersistentVolume, a source of snapshots, damaged, young or of another owner. A
volume that the reclaim policy Retain kept, and whose PersistentVolume was deleted, has no owner.

It deletes nothing by age, and fails, where the cluster may not know all volumes: more than half of them have no
PersistentVolume, a PersistentVolume names another cluster's volume, or a node has a volume that no PersistentVolume names.

With --config it audits each of the routers, or the one that --backend names. The ids for --delete then have their router's
prefix, and --json prints an object for each router.

If it is interrupted between its two readings, it prints the findings of the first.

Flags:
`;

/** How long it may take, in milliseconds. */
const timeoutMs = 600_000;

/** `rds-csi audit`: finds what has no owner. */
export async function auditCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const options = readAuditOptions(args, io.env, await systemFiles(args, io.env));
  const [first] = options.configs;
  if (first?.ids.isOfSeveral === false) return await auditOne(first, options, io);
  const codes: number[] = [];
  for (const config of options.configs) {
    if (!options.json) io.out(`router ${config.settings.backend}:`);
    codes.push(await auditOneOfSeveral(config, options, io));
  }
  return Math.max(...codes);
}

/** Prints a line of JSON for each router. One that is away does not prevent the audit of the others. */
async function auditOneOfSeveral(
  config: ControllerConfig,
  options: AuditCommandOptions,
  io: CommandIo,
): Promise<number> {
  const { settings: { backend }, ids } = config;
  const isOnly = options.configs.length === 1;
  const chosen = options.chosen.flatMap((wanted) =>
    idOn(ids, wanted) ?? (isOnly && wanted.startsWith("/") ? [wanted] : [])
  );
  const asJson = (line: string) => JSON.stringify({ router: backend, ...JSON.parse(line) });
  const own = options.json ? { ...io, out: (line: string) => io.out(asJson(line)) } : io;
  try {
    return await auditOne(config, { ...options, chosen }, own);
  } catch (error) {
    if (!VolumeError.is(error) || error.kind === "cancelled") throw error;
    io.err(`rds-csi audit: router ${backend}: ${error.message}`);
    return exitCodes.failed;
  }
}

async function auditOne(
  config: ControllerConfig,
  options: AuditCommandOptions,
  io: CommandIo,
): Promise<number> {
  const run = { name: "audit", config, cluster: options.cluster, timeoutMs };
  const reporting = { io, clock: systemClock, quiet: options.json };
  return await withProgress("audit", reporting, async (progress) => {
    progress(`looking at the router at ${config.router.address}, and at the cluster where there is one`);
    return await withController(run, io, (deps, context) => runAudit(deps, options, io, context));
  });
}

/**
 * Audits, prints the findings, deletes the requested ones, prints the result of each, and returns the exit code. When
 * it is stopped, the findings so far are printed.
 */
export async function runAudit(
  deps: ControllerDeps,
  options: Omit<AuditCommandOptions, "configs" | "cluster">,
  io: Pick<CommandIo, "out" | "err" | "rewrite">,
  context: CallContext,
): Promise<number> {
  const { foreign, json } = options;
  const unsoundPools = (await deps.store.poolHealth(context)).flatMap((pool) =>
    describeUnsoundPool(pool) ?? []
  );
  const print = (audit: Audit, names: Names = new Map()) => {
    io.rewrite?.("");
    for (const reason of unsoundPools) io.out(`a pool's array has a fault: ${reason}`);
    for (const line of formatAudit(audit, foreign, names, deps.clock.now())) io.out(line);
  };
  const audit = await auditOrFirst(deps, options, context, (first) => {
    if (json) {
      const found = auditJson(first, foreign, new Map(), unsoundPools, []);
      io.out(JSON.stringify({ ...found, complete: false }, null, 2));
    } else print(first);
    io.err(
      "rds-csi audit: interrupted after the first of two readings: some findings may be volumes that are being made or deleted",
    );
  });
  const names = audit.findings.length === 0 ? new Map() : await readNames(deps, context);
  if (!json) print(audit, names);
  const deletions: Deletion[] = [];
  const done = (deletion: Deletion) => {
    deletions.push(deletion);
    const { id, path, failed } = deletion;
    if (json) return;
    if (failed === undefined) io.out(`deleted: ${id} ${path}`);
    else io.err(`not deleted: ${id} ${path}: ${failed}`);
  };
  const named = namedFindings(audit, options);
  for (const finding of named) done(await tryDelete(deps, finding, audit, context));
  const due = dueFindings(audit, options, deps.clock.now()).filter((one) => !named.includes(one));
  if (audit.reasonAgainstAge === undefined || due.length === 0) {
    for (const finding of due) done(await tryDelete(deps, finding, audit, context));
  } else {
    const failed = refuseByAge(audit.reasonAgainstAge);
    if (!json) io.err(`rds-csi audit: ${failed}`);
    deletions.push(...due.map(({ id, path }) => ({ id, path, failed })));
  }
  for (const wanted of options.chosen) {
    if (deletions.some(({ id, path }) => id === wanted || path === wanted)) continue;
    done({
      id: wanted,
      path: "",
      failed: "the audit found no object without an owner under that id or path",
    });
  }
  if (json) io.out(JSON.stringify(auditJson(audit, foreign, names, unsoundPools, deletions), null, 2));
  const isProblem = ({ kind }: AuditFinding) => auditKinds[kind] === "problem";
  // Without the cluster no volume is known to have no owner: that nothing was found says nothing.
  const isIncomplete = typeof audit.cluster !== "string";
  const failed = isIncomplete || audit.findings.some(isProblem) ||
    deletions.some(({ failed }) => failed !== undefined);
  return failed ? exitCodes.failed : exitCodes.ok;
}

/** What people call volumes and snapshots, by id, see `readNames()`. */
type Names = ReadonlyMap<string, string>;

/** @param stopped receives the findings of the first read, when the audit ends before the second one has ended */
async function auditOrFirst(
  deps: ControllerDeps,
  options: Pick<AuditCommandOptions, "vouched">,
  context: CallContext,
  stopped: (first: Audit) => void,
): Promise<Audit> {
  let first: Audit | undefined;
  try {
    return await auditRouter(deps, { ...options, firstSeen: (audit) => (first = audit) }, context);
  } catch (error) {
    if (first !== undefined) stopped(first);
    throw error;
  }
}

/** The findings that were named, even protected ones, so that the result is reported; each once. */
function namedFindings(
  { findings }: Audit,
  { chosen }: Pick<AuditCommandOptions, "chosen">,
): readonly AuditFinding[] {
  const named = findings.filter(({ id, path }) =>
    chosen.includes(id) || (path !== "" && chosen.includes(path))
  );
  const deletable = named.filter(({ kept }) => kept === undefined);
  const reported = named.filter(({ id, path, kept }) =>
    kept !== undefined && (chosen.includes(path) || !deletable.some((one) => one.id === id))
  );
  return [...new Set([...deletable, ...reported])];
}

function dueFindings(
  { findings }: Audit,
  { deleteOlderThanMs }: Pick<AuditCommandOptions, "deleteOlderThanMs">,
  nowMs: number,
): readonly AuditFinding[] {
  return deleteOlderThanMs === undefined
    ? []
    : findings.filter((one) => isDue(one, nowMs, deleteOlderThanMs));
}

async function tryDelete(
  deps: ControllerDeps,
  finding: AuditFinding,
  { view }: Audit,
  context: CallContext,
): Promise<Deletion> {
  const { id, path } = finding;
  try {
    await deleteOrphan(deps, finding, view, context);
    return { id, path, failed: undefined };
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return { id, path, failed: error.message };
  }
}

/** The result of a deletion. */
interface Deletion {
  readonly id: string;
  readonly path: string;
  /** Undefined when it is gone. */
  readonly failed: string | undefined;
}

/** The findings to show: other owners' disks are only counted. */
function shownFindings({ findings }: Audit, foreign: boolean): readonly AuditFinding[] {
  return foreign ? findings : findings.filter(({ kind }) => !foreignKinds.has(kind));
}

/** An audit as lines of aligned columns. */
function formatAudit(audit: Audit, foreign: boolean, names: Names, nowMs: number): string[] {
  const shown = shownFindings(audit, foreign);
  const [header, ...rows] = alignColumns([
    ["STATE", "KIND", "ID", "AGE", "DELETABLE"],
    ...shown.map((one) => [
      auditKinds[one.kind],
      one.kind,
      one.id,
      ageOf(one, nowMs),
      one.kept === undefined ? "yes" : "no",
    ]),
  ]);
  // Paths and reasons are long: below their row they fit into a terminal.
  const lines = rows.flatMap((row, at) => {
    const { id, path, found, kept } = shown[at]!;
    const name = names.get(id);
    return [
      row,
      ...[
        name === undefined ? "" : `name: ${name}`,
        path,
        kept === undefined ? found : `${found} (kept: ${kept})`,
      ].flatMap((text) => text === "" ? [] : [`  ${text}`]),
    ];
  });
  return [
    ...lines.length === 0 ? [] : [header!, ...lines],
    ...foreignLines(audit),
    ...audit.reasonAgainstAge === undefined ? [] : [`nothing is deleted by age: ${audit.reasonAgainstAge}`],
    summary(audit),
  ];
}

/** An audit and its deletions, for JSON. */
function auditJson(
  audit: Audit,
  foreign: boolean,
  names: Names,
  unsoundPools: readonly string[],
  deletions: readonly Deletion[],
): Readonly<Record<string, unknown>> {
  const counts = Map.groupBy(audit.findings, ({ kind }) => kind);
  return {
    cluster: audit.cluster,
    reasonAgainstAge: audit.reasonAgainstAge ?? null,
    counts: Object.fromEntries([...counts].map(([kind, of]) => [kind, of.length])),
    findings: shownFindings(audit, foreign).map(({ kind, id, path, found, sinceSeconds, kept }) => ({
      state: auditKinds[kind],
      kind,
      id,
      name: names.get(id) ?? null,
      path,
      found,
      since: sinceSeconds === undefined ? null : new Date(sinceSeconds * 1000).toISOString(),
      deletable: kept === undefined,
      kept: kept ?? null,
    })),
    unsoundPools,
    deleted: deletions.filter(({ failed }) => failed === undefined).map(({ id, path }) => ({ id, path })),
    failed: deletions.filter(({ failed }) => failed !== undefined),
  };
}

function foreignLines({ findings }: Audit): string[] {
  const counts = Map.groupBy(findings.filter(({ kind }) => foreignKinds.has(kind)), ({ kind }) => kind);
  if (counts.size === 0) return [];
  const text = [...counts].map(([kind, of]) => `${of.length} ${kind}`);
  return [`of other or unknown owners, left alone (--foreign lists them): ${text.join(", ")}`];
}

function summary({ findings, cluster }: Audit): string {
  const count = (state: string) => findings.filter(({ kind }) => auditKinds[kind] === state).length;
  const asked = cluster === "read"
    ? "compared with PersistentVolumes and VolumeAttachments"
    : cluster === "none"
    ? "not compared with PersistentVolumes because no cluster was asked"
    : `incomplete, because the cluster could not be asked: ${cluster.unreadable}`;
  const counts = ["problem", "warning", "note"].map((kind) => counted(count(kind), kind)).join(", ");
  return `audit: ${counts}; ${asked}`;
}

function ageOf({ sinceSeconds }: AuditFinding, nowMs: number): string {
  if (sinceSeconds === undefined) return "-";
  const hours = Math.floor((nowMs / 1000 - sinceSeconds) / 3600);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}
