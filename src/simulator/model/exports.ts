import { createHash } from "node:crypto";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { formatUuid } from "../bytes.ts";
import { type Disk, servedNqn } from "./disk.ts";

/** The kernel of a router, which its target reports as the firmware: an RDS2216 with RouterOS 7.24.4. */
export const firmware = "5.6.3";

/** The ids by which a host distinguishes namespaces: a router shows no NGUID. */
export interface ExportIdentity {
  /** Of the namespace, in the form of RFC 9562. */
  readonly uuid: string;
  /** Of the subsystem: 16 hexadecimal digits. */
  readonly serial: string;
}

/** How an export is offered. */
export interface ExportAccess {
  readonly port: number;
  /** NQNs of the hosts that may connect; undefined admits all. */
  readonly hosts: readonly string[] | undefined;
  /** The size that connected hosts see. */
  readonly sizeBytes: bigint;
  readonly identity: ExportIdentity;
}

/** Makes exported disks reachable for initiators. */
export interface Exporter {
  /**
   * Serves a file under a subsystem NQN, also a withdrawn one that lingers. `path` is undefined if the files are only
   * in memory.
   */
  serve(nqn: string, path: string | undefined, access: ExportAccess): void;
  /** Changes how it is served. */
  change?(nqn: string, access: ExportAccess): void;
  /**
   * Notes that it is withdrawn, but connected hosts are served until {@linkcode Exporter.withdraw}; new hosts are not
   * admitted.
   */
  linger?(nqn: string): void;
  /** Notes that it is withdrawn, and connected hosts stay connected: their commands are refused. */
  refuse?(nqn: string): void;
  /** Ends it. */
  withdraw(nqn: string): void;
  /** Opens or closes the port of all exports, when the router boots. It is open at first. */
  listen?(open: boolean): void;
  /** Ends everything. */
  close?(): Promise<void>;
}

/** The exporter of a simulator to whose exports nothing connects. */
export const noExporter: Exporter = { serve() {}, withdraw() {} };

/** What the exports read from the router. */
interface ExportRules {
  /** The path of a disk's file on this machine. */
  locate(filePath: string): string | undefined;
  /** How long a withdrawn export goes on serving, in milliseconds, or that the commands of its hosts are refused. */
  unexport(): RouterBehaviours["unexport"];
  /** Whether an export that was withdrawn and comes back is the same namespace to its hosts. */
  identity(): "kept" | "new-per-export";
  /** What happens to connected hosts when their disk's comment changes, or another disk comes or goes. */
  sideEffects(): RouterBehaviours["sideEffects"];
}

interface Served {
  readonly access: ExportAccess;
  /** The path of its file; undefined if the files are only in memory. */
  readonly path: string | undefined;
  /** How often all its sessions were ended while it went on. */
  readonly generation: number;
  /** Ends the lingering before its time; undefined while the export does not linger. */
  readonly cancel: (() => void) | undefined;
}

/** Follows the disks and serves their exports. A withdrawn export ends at once, or, on some routers, after a while. */
export class Exports {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #exporter: Exporter;
  readonly #rules: ExportRules;
  readonly #served = new Map<string, Served>();
  /** Identities that a boot keeps, by NQN. */
  readonly #beforeBoot = new Map<string, ExportIdentity>();
  /** The number of boots at which it forgot its identities. */
  #forgotten = 0;
  #listens = true;

  constructor(clock: Clock, random: Random, exporter: Exporter, rules: ExportRules) {
    this.#clock = clock;
    this.#random = random;
    this.#exporter = exporter;
    this.#rules = rules;
  }

  /** NQNs that an initiator can reach now, including lingering ones. */
  list(): readonly string[] {
    return [...this.#served.keys()].toSorted();
  }

  /** Whether the port of the exports is open. */
  get listens(): boolean {
    return this.#listens;
  }

  /** Opens or closes that port. */
  listen(open: boolean): void {
    if (open === this.#listens) return;
    this.#listens = open;
    this.#exporter.listen?.(open);
  }

  /** How an NQN is offered; undefined when it cannot be reached. */
  accessOf(nqn: string): ExportAccess | undefined {
    return this.#served.get(nqn)?.access;
  }

  /** How often the sessions to an NQN were ended while it went on being offered. */
  generationOf(nqn: string): number | undefined {
    return this.#served.get(nqn)?.generation;
  }

  /** Follows the change of a disk. */
  follow(before: Disk | undefined, after: Disk | undefined): void {
    const old = servedNqn(before);
    const now = servedNqn(after);
    const comesOrGoes = before === undefined || after === undefined || old !== now;
    if (comesOrGoes && this.#rules.sideEffects() === "ends-sessions") {
      for (const nqn of this.#served.keys()) if (nqn !== old) this.#endSessions(nqn);
    }
    if (old !== undefined && old !== now) this.#withdraw(old);
    if (after === undefined || now === undefined) return;
    if (old === now && before?.filePath === after.filePath) return this.#change(now, before, after);
    this.#served.get(now)?.cancel?.();
    const access = this.#access(after, this.#newIdentity(now));
    const path = this.#rules.locate(after.filePath);
    this.#served.set(now, { access, path, generation: 0, cancel: undefined });
    this.#exporter.serve(now, path, access);
  }

  /** Ends every export at once, including lingering ones. */
  clear(): void {
    for (const nqn of [...this.#served.keys()]) this.#end(nqn);
  }

  /** Ends every export because the router goes down: an export that comes back afterwards comes back from a boot. */
  powerOff(identity: "kept" | "new"): void {
    if (identity === "kept") {
      for (const [nqn, { access }] of this.#served) this.#beforeBoot.set(nqn, access.identity);
    } else {
      this.#beforeBoot.clear();
      this.#forgotten++;
    }
    this.clear();
  }

  #change(nqn: string, before: Disk, after: Disk): void {
    const same = before.port === after.port && before.allowHostName === after.allowHostName &&
      before.attachedBytes === after.attachedBytes;
    const served = this.#served.get(nqn);
    if (served === undefined) return;
    if (!same) {
      const access = this.#access(after, served.access.identity);
      this.#served.set(nqn, { ...served, access, cancel: undefined });
      this.#exporter.change?.(nqn, access);
    }
    const isNamedAnew = before.comment !== after.comment;
    if (isNamedAnew && this.#rules.sideEffects() === "ends-sessions") this.#endSessions(nqn);
  }

  /** Ends all sessions, so that hosts have to reconnect. A lingering export is left to its end. */
  #endSessions(nqn: string): void {
    const served = this.#served.get(nqn);
    if (served === undefined || served.cancel !== undefined) return;
    this.#served.set(nqn, { ...served, generation: served.generation + 1 });
    this.#exporter.withdraw(nqn);
    this.#exporter.serve(nqn, served.path, served.access);
  }

  #access({ port = 0, allowHostName, attachedBytes }: Disk, identity: ExportIdentity): ExportAccess {
    const hosts = allowHostName === "" ? undefined : allowHostName.split(",");
    return { port, hosts, sizeBytes: attachedBytes, identity };
  }

  /** The kernel's target makes both ids when it makes the subsystem and its namespace. */
  #newIdentity(nqn: string): ExportIdentity {
    const known = this.#beforeBoot.get(nqn);
    this.#beforeBoot.delete(nqn);
    if (known !== undefined) return known;
    if (this.#rules.identity() === "new-per-export") return newIdentity(this.#random);
    return identityFor(this.#forgotten === 0 ? nqn : `${nqn} ${this.#forgotten}`);
  }

  #withdraw(nqn: string): void {
    const lingerMs = this.#rules.unexport();
    if (lingerMs === 0 || lingerMs === "refuses-commands") return this.#end(nqn);
    const served = this.#served.get(nqn);
    if (served === undefined) return;
    this.#exporter.linger?.(nqn);
    this.#served.set(nqn, { ...served, cancel: this.#clock.timer(lingerMs, () => this.#end(nqn)) });
  }

  #end(nqn: string): void {
    const served = this.#served.get(nqn);
    if (served === undefined) return;
    this.#served.delete(nqn);
    served.cancel?.();
    const { refuse } = this.#exporter;
    const refuses = refuse !== undefined && this.#rules.unexport() === "refuses-commands";
    if (refuses) refuse.call(this.#exporter, nqn);
    else this.#exporter.withdraw(nqn);
  }
}

/** The identity that a router which keeps identities gives an NQN each time. */
export function identityFor(nqn: string): ExportIdentity {
  const digest = createHash("sha256").update(nqn).digest();
  return identityOf(digest.subarray(0, 16), digest.subarray(16, 24));
}

/** The identity that a router which does not keep identities makes for an export. */
export function newIdentity(random: Random): ExportIdentity {
  return identityOf(random.bytes(16), random.bytes(8));
}

function identityOf(uuidBytes: Uint8Array, serialBytes: Uint8Array): ExportIdentity {
  const bytes = Uint8Array.from(uuidBytes);
  // RFC 9562, version 4.
  bytes[6] = 0x40 | bytes[6]! & 0x0f;
  bytes[8] = 0x80 | bytes[8]! & 0x0f;
  return { uuid: formatUuid(bytes), serial: serialBytes.toHex() };
}
