import type { CallContext } from "../../volume/ports/ports.ts";

/** Who a host says it is. */
export interface HostName {
  readonly nqn: string;
  /** A UUID. */
  readonly id: string;
}

/** A live connection of this machine, as a host, to one export. */
export interface HostLink extends AsyncDisposable {
  /** Resolves with the reason when it has ended, whoever ended it. */
  readonly ended: Promise<string>;
  /** Size of what is exported, in bytes, asked of the router now. */
  namespaceBytes(context: CallContext): Promise<bigint>;
  /** Reads blocks. */
  read(lba: bigint, blocks: number, context: CallContext): Promise<Uint8Array>;
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
}
