import type { FolderTotals, VolumeTotals } from "../../volume/model/totals.ts";
import type { HealthProblem } from "../../volume/model/health.ts";

/** What a driver is, as its configuration says. Nothing in it is a secret. */
export interface DriverFacts {
  readonly driverName: string;
  readonly version: string;
  /** What it serves. */
  readonly roles: readonly ("controller" | "node")[];
  /** The node that it is, if it is one. */
  readonly nodeId?: string | undefined;
  /** Addresses of routers by the names that StorageClasses know them by. */
  readonly routers: Readonly<Record<string, string>>;
}

/** Something that happened, for people. */
export interface StatusEvent {
  /** When, as all times here in milliseconds since the Unix epoch. */
  readonly atMs: number;
  /** Whether it needs the attention of a person. */
  readonly warning: boolean;
  /** One word. */
  readonly reason: string;
  readonly message: string;
  readonly volumeId?: string | undefined;
  /** Where it is about one. */
  readonly router?: string | undefined;
}

/** How long things took, in milliseconds. */
export interface Latency {
  /** How many there were since the start, not only those that the rest is of. */
  readonly count: number;
  /** Half of the last ones were at least as quick; undefined where there was none. */
  readonly medianMs: number | undefined;
  /** 99 of 100 of the last ones were at least as quick. */
  readonly p99Ms: number | undefined;
}

/** Finds the claim of a volume, by the router's name and the id that it has there; undefined when it is not known. */
export type ClaimLookup = (router: string, id: string) => string | undefined;

/** What is known of a router and of the connection to it, without asking it. */
export interface RouterStatus {
  readonly name: string;
  readonly address: string;
  /** As it said it; undefined before it did. */
  readonly version: string | undefined;
  readonly board: string | undefined;
  /** State of the SSH session; idle before the first command. */
  readonly session: string;
  readonly sessionSinceAtMs: number;
  /** Why it is in that state, when there is something to say. */
  readonly sessionReason: string | undefined;
  readonly breaker: string;
  readonly breakerSinceAtMs: number;
  readonly breakerCause: string | undefined;
  readonly waiting: number;
  readonly running: number;
  /** Of commands of all kinds. */
  readonly latency: Latency;
  /** When the figures below were seen; undefined when nobody has looked yet. */
  readonly readAtMs: number | undefined;
  /** As the last look has shown them; promises to snapshots are of the last look at those. */
  readonly folders: readonly FolderTotals[];
  /** What the last audit found, by kind; undefined before there was one, and where another controller makes them. */
  readonly audit: { readonly atMs: number; readonly found: Readonly<Record<string, number>> } | undefined;
}

/** A volume with what is known of its health. */
export interface VolumeStatus extends VolumeTotals {
  readonly router: string;
  /** Namespace and name of its claim, with a slash between; undefined where no cluster says. */
  readonly claim?: string | undefined;
  /** What was wrong with it when its health was last looked at; nothing when it was well. */
  readonly problems: readonly HealthProblem[];
}

/** A part of a list that may be long. */
export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are of which the list was asked for. */
  readonly matching: number;
  /** How many there are at all. */
  readonly total: number;
  /** Which part this is, from 1. */
  readonly page: number;
  readonly pages: number;
}

/** What a controller knows. */
export interface ControllerStatus {
  /** Whether this process is the one of several controllers that works; undefined where there is no election. */
  readonly leads: boolean | undefined;
  readonly routers: readonly RouterStatus[];
  readonly volumes: Page<VolumeStatus>;
  readonly attachments: number;
  readonly migrations: number;
  /** How many volumes something is wrong with. */
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
  /** When its paths and its health were last read; undefined before the first reading since the start. */
  readonly seenAtMs: number | undefined;
  readonly paths: readonly PathStatus[];
  readonly problems: readonly HealthProblem[];
}

/** What a node knows. */
export interface NodeStatus {
  readonly nodeId: string;
  readonly volumes: Page<StagedVolume>;
  /** How many volumes have no live path, or have something wrong with them, of those that were looked at. */
  readonly unwell: number;
  /** What the kubelet said of the driver's registration; undefined where the driver does not register itself. */
  readonly registration: { readonly state: string; readonly atMs: number } | undefined;
}

/** A call that was not answered with OK. */
export interface FailedCall {
  readonly atMs: number;
  readonly requestId: string;
  readonly method: string;
  readonly volumeId: string | undefined;
  readonly code: string;
  /** What the caller was told. */
  readonly message: string;
  readonly durationMs: number;
}

/** All that a driver tells of itself: what it knows, and since when. */
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

/** Which part of the volumes is asked for. */
export interface StatusQuery {
  /** Only volumes whose id, claim, node or problem holds this text; all when it is empty. */
  readonly text: string;
  /** From 1. */
  readonly page: number;
  /** How many volumes a page has. */
  readonly perPage: number;
}

/** How many volumes a page has by itself, and at most. */
export const defaultPerPage = 100;
const maxPerPage = 1000;

/** Reads the query of a request: anything that makes no sense counts as left out. */
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

/** The part of a list that is asked for; the last one when there are fewer. */
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
