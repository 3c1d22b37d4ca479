import type { ExportAccess } from "../model/exports.ts";
import { openStorage, type Storage } from "./storage.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { Refused, statuses } from "./command.ts";

/** A disk that is exported, or was a moment ago. */
export class Subsystem {
  readonly nqn: string;
  /** The file behind it; undefined when it is only in memory. */
  readonly path: string | undefined;
  readonly storage: Storage;
  readonly blockBytes: number;
  readonly controllers = new Set<Controller>();
  access: ExportAccess;
  /** Withdrawn: those who are connected are served on, nobody else is. */
  lingering = false;
  /** Its namespace is gone, and hosts that were connected still are. */
  refuses = false;

  constructor(nqn: string, path: string | undefined, access: ExportAccess, blockBytes = 512) {
    this.nqn = nqn;
    this.path = path;
    this.access = access;
    this.blockBytes = blockBytes;
    this.storage = openStorage(path);
  }

  /** The size that its hosts are told, in blocks. */
  get blocks(): bigint {
    return this.access.sizeBytes / BigInt(this.blockBytes);
  }

  /** 16 bytes. */
  get uuid(): Uint8Array {
    return Uint8Array.fromHex(this.access.identity.uuid.replaceAll("-", ""));
  }

  /** 16 characters. */
  get serial(): string {
    return this.access.identity.serial;
  }

  /** Whether a host may connect; no list lets everybody in. */
  allows(hostNqn: string): boolean {
    const { hosts } = this.access;
    return hosts === undefined || hosts.includes(hostNqn);
  }

  /** Cuts off every host. */
  cut(): void {
    for (const controller of [...this.controllers]) controller.end();
  }

  /** Takes the namespace away from hosts that stay connected, for good. */
  refuse(): void {
    this.refuses = true;
    this.storage.close();
  }

  /** Cuts off every host, for good. */
  close(): void {
    this.cut();
    this.storage.close();
  }
}

/** A connection as its controller sees it. */
export interface ControllerQueue {
  close(): void;
}

/** What a {@linkcode Controller} is made of. */
interface ControllerParts {
  readonly id: number;
  /** Undefined for the discovery service. */
  readonly subsystem: Subsystem | undefined;
  readonly hostNqn: string;
  /** 0 for none. */
  readonly keepAliveMs: number;
  readonly clock: Clock;
}

/** I/O queues that a host gets at most. */
export const maxQueues = 16;

/** What a host is told when the namespace has changed: a notice, of namespaces, to be read in log page 4. */
const namespaceChanged = 0x04_00_02n;
const namespaceNotices = 0x100;
const maxEventRequests = 4;
/** A host is dropped when it was silent for its keep-alive time and this much more. */
const keepAliveGraceMs = 2000;

/** What one host has of one subsystem: an admin queue, its I/O queues, and what it was told. */
export class Controller {
  readonly id: number;
  readonly subsystem: Subsystem | undefined;
  readonly hostNqn: string;
  readonly queues = new Map<number, ControllerQueue>();
  /** The property CC. */
  configuration = 0;
  /** Which notices the host wants. */
  eventConfiguration = 0;
  keepAliveMs: number;
  /** Whether the namespace has changed since the host last asked. */
  changed = false;
  ended = false;
  readonly #clock: Clock;
  #eventRequests: ((result: bigint) => void)[] = [];
  #noticeDue = false;
  #stopTimer = () => {};

  constructor(parts: ControllerParts) {
    this.id = parts.id;
    this.subsystem = parts.subsystem;
    this.hostNqn = parts.hostNqn;
    this.keepAliveMs = parts.keepAliveMs;
    this.#clock = parts.clock;
    this.subsystem?.controllers.add(this);
    this.heard();
  }

  get enabled(): boolean {
    return (this.configuration & 1) === 1;
  }

  /** The property CSTS: ready while enabled, shut down as soon as that is asked for. */
  get status(): number {
    const shutDown = (this.configuration >> 14 & 3) !== 0;
    return (this.enabled ? 1 : 0) | (shutDown ? 2 << 2 : 0);
  }

  /** The host has said something: it is there. */
  heard(): void {
    this.#stopTimer();
    if (this.keepAliveMs === 0 || this.ended) return;
    this.#stopTimer = this.#clock.timer(this.keepAliveMs + keepAliveGraceMs, () => this.end());
  }

  /**
   * The host waits for something to happen.
   *
   * @throws {Refused} when it waits too often already
   */
  awaitEvent(answer: (result: bigint) => void): void {
    if (this.#eventRequests.length >= maxEventRequests) {
      throw new Refused(statuses.eventLimit, "So many event requests are not kept.");
    }
    this.#eventRequests.push(answer);
    this.#notify();
  }

  /** The namespace has changed: a host that wants to know is told once, until it has looked. */
  namespaceChanged(): void {
    if (this.changed) return;
    this.changed = true;
    if ((this.eventConfiguration & namespaceNotices) === 0) return;
    this.#noticeDue = true;
    this.#notify();
  }

  /** Ends every connection of it. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.#stopTimer();
    this.subsystem?.controllers.delete(this);
    this.#eventRequests = [];
    for (const queue of [...this.queues.values()]) queue.close();
  }

  /** Without an admin queue there is no controller. */
  leave(queueId: number): void {
    this.queues.delete(queueId);
    if (queueId === 0) this.end();
  }

  #notify(): void {
    const request = this.#noticeDue ? this.#eventRequests.shift() : undefined;
    if (request === undefined) return;
    this.#noticeDue = false;
    request(namespaceChanged);
  }
}

/** The controller's capabilities: queues of 128 entries, in one piece; NVM commands; ready within 7.5 s. */
export const capabilities = 127n | 1n << 16n | 15n << 24n | 1n << 37n;
/** NVM Express 1.3. */
export const version = 0x0001_0300;
/** Entries that a queue has at most. */
export const maxEntries = 128;

/** The subsystem of a controller that is for I/O. @throws {Refused} for the discovery service, and without a namespace. */
export function subsystemOf({ subsystem }: Controller): Subsystem {
  if (subsystem === undefined) {
    throw new Refused(statuses.invalidOpcode, "The discovery service has no namespaces.");
  }
  if (subsystem.refuses) throw new Refused(statuses.invalidNamespace, "The namespace was taken away.");
  return subsystem;
}
