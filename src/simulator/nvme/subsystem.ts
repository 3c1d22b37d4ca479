import { createHash } from "node:crypto";
import type { ExportAccess } from "../model/exporter.ts";
import type { Controller } from "./controller.ts";
import { openStorage, type Storage } from "./storage.ts";

/** Blocks have so many bytes. */
export const blockBytes = 512;

/** A disk that is exported, or was a moment ago. */
export class Subsystem {
  readonly nqn: string;
  /** The file behind it; undefined when it is only in memory. */
  readonly path: string | undefined;
  readonly storage: Storage;
  readonly controllers = new Set<Controller>();
  access: ExportAccess;
  /** Withdrawn: those who are connected are served on, nobody else is. */
  lingering = false;
  readonly #digest: Uint8Array;

  constructor(nqn: string, path: string | undefined, access: ExportAccess) {
    this.nqn = nqn;
    this.path = path;
    this.access = access;
    this.storage = openStorage(path);
    // Another epoch of the same disk is another namespace: an initiator takes two of one identity for a fault.
    this.#digest = createHash("sha256").update(nqn).digest();
  }

  /** The size that its hosts are told, in blocks. */
  get blocks(): bigint {
    return this.access.sizeBytes / BigInt(blockBytes);
  }

  /** 16 bytes. */
  get nguid(): Uint8Array {
    return this.#digest.subarray(0, 16);
  }

  /** 16 bytes. */
  get uuid(): Uint8Array {
    return this.#digest.subarray(16, 32);
  }

  /** 20 characters. */
  get serial(): string {
    return Array.from(this.#digest.subarray(0, 10), (byte) => byte.toString(16).padStart(2, "0")).join("");
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

  /** Cuts off every host, for good. */
  close(): void {
    this.cut();
    this.storage.close();
  }
}
