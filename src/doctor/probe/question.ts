import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { PoolDisk } from "../router/pools.ts";
import type { ProbeSession, ProbeSessionLimits } from "./session.ts";
import type { ScratchNames } from "./names.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";

/** What a question may use. */
export interface Probe
  extends
    Pick<ProbeOptions, "clock" | "random" | "signal" | "host" | "say" | "callMs" | "writeMs" | "nqnBytes"> {
  readonly line: ProbeSession;
  readonly names: ScratchNames;
  /** The pool that the base path lies on. */
  readonly pool: PoolDisk;
  /** What a reboot has shown; undefined where there was none. */
  readonly reboot: RebootSeen | undefined;
}

/** What a reboot has shown. */
export interface RebootSeen {
  readonly identity: RouterBehaviours["bootIdentity"];
}

/** Why a question has no answer on this router, from here. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** Who a host says it is. */
export interface HostName {
  readonly nqn: string;
  /** A UUID. */
  readonly id: string;
}

/** A live connection of this machine, as a host, to one export. */
export interface HostLink extends AsyncDisposable {
  /** Serial number of the subsystem. */
  readonly serial: string;
  /** Size of what is exported, in bytes, asked of the router now. */
  namespaceBytes(context: CallContext): Promise<bigint>;
  /** Size of its blocks, in bytes: a router's is 512, that of a file in Linux 4096. */
  blockBytes(context: CallContext): Promise<number>;
  /** By what its namespace is told from others, in lower-case hex, "" where it has none; asked of the router now. */
  namespaceIdentity(context: CallContext): Promise<{ readonly nguid: string; readonly uuid: string }>;
  /** Reads blocks. */
  read(lba: bigint, blocks: number, context: CallContext): Promise<Uint8Array>;
  /** Writes blocks: only ever to a scratch disk that was proven to be one. */
  write(lba: bigint, data: Uint8Array, context: CallContext): Promise<void>;
  /** Makes what was written outlast a loss of power. */
  flush(context: CallContext): Promise<void>;
}

/** This machine as a host of the router's exports. */
export interface HostSide {
  /** The port on which exports are offered to it. */
  readonly port: number;
  /**
   * Connects to an export.
   *
   * @throws {VolumeError} unavailable when it cannot be reached, or refuses
   */
  connect(subsystemNqn: string, host: HostName, context: CallContext): Promise<HostLink>;
  /** Whether an error of `connect` says that the router answered, and does not let this host in. */
  isRefusal(error: unknown): boolean;
  /** Whether an error of a link says that the router answered the command, and refuses it. */
  isRefusedCommand(error: unknown): boolean;
}

/** What a probe needs. */
export interface ProbeOptions {
  readonly transport: SshTransport;
  readonly clock: Clock;
  readonly random: Random;
  /** The folder on the router in which it may make things, with one leading slash. */
  readonly basePath: string;
  /** The longest NQN that the driver will give to an export, in bytes. */
  readonly nqnBytes: number;
  /** This machine as a host of the router's exports. */
  readonly host: HostSide;
  /** Aborted when it is to stop: sleepers look at it, and it then cleans up. */
  readonly signal: AbortSignal;
  /** How long the router is waited for. */
  readonly limits?: ProbeSessionLimits;
  /** How long questions are begun, in milliseconds. @default {300000} */
  readonly beginMs?: number;
  /** How long an export may take to answer a command, in milliseconds. @default {10000} */
  readonly callMs?: number;
  /** How long filling a scratch disk may take, in milliseconds. @default {30000} */
  readonly writeMs?: number;
  /** Whether a disk stands that was made before a reboot, to be looked at first. @default {false} */
  readonly afterReboot?: boolean;
  /** Tells a person what goes on. */
  say(text: string): void;
}
