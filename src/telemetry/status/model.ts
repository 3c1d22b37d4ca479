import type { FolderTotals, VolumeTotals } from "../../volume/model/totals.ts";
import type { JudgedHardware } from "../../volume/model/health/hardware.ts";
import type { HealthProblem } from "../../volume/model/health/health.ts";

/** Facts about a driver from its configuration. None of them is a secret. */
export interface DriverFacts {
  readonly driverName: string;
  readonly version: string;
  /** The services that it serves. */
  readonly roles: readonly ("controller" | "node")[];
  /** Its node id, if it is a node. */
  readonly nodeId?: string | undefined;
  /** Addresses of routers by their names in StorageClasses. */
  readonly routers: Readonly<Record<string, string>>;
}

/** An event, for people. */
export interface StatusEvent {
  /** Its time; all times here are in milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** Whether it needs the attention of a person. */
  readonly warning: boolean;
  /** One word. */
  readonly reason: string;
  readonly message: string;
  readonly volumeId?: string | undefined;
  /** The router of the event, if it is about one. */
  readonly router?: string | undefined;
}

/** Durations, in milliseconds. */
export interface Latency {
  /** Their number since the start; the other fields only use the last ones. */
  readonly count: number;
  /** The median of the last ones; undefined if there was none. */
  readonly medianMs: number | undefined;
  /** The 99th percentile of the last ones. */
  readonly p99Ms: number | undefined;
}

/** Finds namespace and name of a volume's claim, by the volume's handle; undefined when it is not known. */
export type ClaimLookup = (handle: string) => string | undefined;

/** What is known of a router and of its connection, without asking it. */
export interface RouterStatus {
  readonly name: string;
  readonly address: string;
  /** As the router reported it; undefined before it did. */
  readonly version: string | undefined;
  readonly board: string | undefined;
  /** Whether that version has holes in SSH that are exploited. */
  readonly sshExploited: boolean;
  /** State of the SSH session; idle before the first command. */
  readonly session: string;
  readonly sessionSinceAtMs: number;
  /** The reason for that state, if there is one. */
  readonly sessionReason: string | undefined;
  readonly breaker: string;
  readonly breakerSinceAtMs: number;
  readonly breakerCause: string | undefined;
  readonly waiting: number;
  readonly running: number;
  /** Of commands of all kinds. */
  readonly latency: Latency;
  /** When the totals below were read; undefined when they were not read yet. */
  readonly readAtMs: number | undefined;
  /** From the last read; promises to snapshots are from the last read of those. */
  readonly folders: readonly FolderStatus[];
  /** Its arrays and drives; undefined before they were read, and if another controller reads them. */
  readonly hardware: JudgedHardware | undefined;
  /** The findings of the last audit, by kind; undefined before there was one, and if another controller makes them. */
  readonly audit: { readonly atMs: number; readonly found: Readonly<Record<string, number>> } | undefined;
}

/** A folder with the claim of the volume that has its pool's label. */
export interface FolderStatus extends FolderTotals {
  readonly labelClaim?: string | undefined;
}

/** A volume with what is known of its health. */
export interface VolumeStatus extends VolumeTotals {
  readonly router: string;
  /** Namespace and name of its claim, joined by a slash; undefined when it is not known. */
  readonly claim?: string | undefined;
  /** Its problems at the last check of its health; none when it was healthy. */
  readonly problems: readonly HealthProblem[];
}

/** A part of a list that may be long. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The number of items that match the query. */
  readonly matching: number;
  /** The number of all items. */
  readonly total: number;
  /** The number of this part, from 1. */
  readonly page: number;
  readonly pages: number;
}

/** The state of a controller. */
export interface ControllerStatus {
  /** Whether this process is the leader; undefined without an election. */
  readonly leads: boolean | undefined;
  readonly routers: readonly RouterStatus[];
  readonly volumes: Page<VolumeStatus>;
  readonly attachments: number;
  readonly migrations: number;
  /** The number of volumes with problems. */
  readonly unwell: number;
}

/** A path to a volume. */
export interface PathStatus {
  readonly address: string;
  readonly port: number;
  /** In the kernel's word. */
  readonly state: string;
}

/** A volume that is staged on a node. */
export interface StagedVolume {
  readonly id: string;
  /** When its paths and its health were last read; undefined before the first read since the start. */
  readonly seenAtMs: number | undefined;
  readonly paths: readonly PathStatus[];
  readonly problems: readonly HealthProblem[];
}

/** The state of a node. */
export interface NodeStatus {
  readonly nodeId: string;
  readonly volumes: Page<StagedVolume>;
  /** The number of volumes without a live path, or with problems, among those that were read. */
  readonly unwell: number;
  /** The kubelet's result of the driver's registration; undefined if the driver does not register itself. */
  readonly registration: { readonly state: string; readonly atMs: number } | undefined;
}

/** A call that was not answered with OK. */
export interface FailedCall {
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly volumeId: string | undefined;
  readonly code: string;
  /** The message that the caller got. */
  readonly message: string;
  readonly durationMs: number;
}

/** Everything that a driver shows of itself: its state, and since when. */
export interface Status {
  readonly atMs: number;
  readonly startedAtMs: number;
  readonly driver: DriverFacts;
  /** Why a restart would help; undefined when it would not. */
  readonly failure: string | undefined;
  /** Why it takes no calls; undefined when it does. */
  readonly unreadiness: string | undefined;
  readonly controller: ControllerStatus | undefined;
  readonly node: NodeStatus | undefined;
  readonly failedCalls: readonly FailedCall[];
  readonly events: readonly StatusEvent[];
}

/** The requested part of the volumes. */
export interface StatusQuery {
  /** Only volumes whose id, claim, node or problem contains this text; all when it is empty. */
  readonly text: string;
  /** From 1. */
  readonly page: number;
  /** The number of volumes on a page. */
  readonly perPage: number;
}

/** The default and the maximum number of volumes on a page. */
export const defaultPerPage = 100;
const maxPerPage = 1000;

/** Parses the query of a request: an invalid value counts as left out. */
export function parseStatusQuery(parameters: URLSearchParams): StatusQuery {
  const whole = (name: string, fallback: number, most: number) => {
    const text = parameters.get(name) ?? "";
    return /^[1-9][0-9]{0,5}$/.test(text) ? Math.min(Number(text), most) : fallback;
  };
  return {
    text: (parameters.get("q") ?? "").trim().slice(0, 128),
    page: whole("page", 1, 999_999),
    perPage: whole("limit", defaultPerPage, maxPerPage),
  };
}

/** The requested part of a list; the last one when there are fewer. */
export function pageOf<T>(
  all: readonly T[],
  { text, page, perPage }: StatusQuery,
  wording: (one: T) => readonly string[],
): Page<T> {
  const wanted = text.toLowerCase();
  const matching = wanted === ""
    ? all
    : all.filter((one) => wording(one).some((word) => word.toLowerCase().includes(wanted)));
  const pages = Math.max(1, Math.ceil(matching.length / perPage));
  const at = Math.min(page, pages);
  return {
    items: matching.slice((at - 1) * perPage, at * perPage),
    matching: matching.length,
    total: all.length,
    page: at,
    pages,
  };
}
