/** How an export is offered. */
export interface ExportAccess {
  readonly port: number;
  /** NQNs of the hosts that may connect; undefined lets everybody in. */
  readonly hosts: readonly string[] | undefined;
  /** Size that those who are connected see. */
  readonly sizeBytes: bigint;
}

/** Makes what is exported reachable for initiators. */
export interface Exporter {
  /**
   * Serves a file under a subsystem NQN, also one that was withdrawn and lingers. `path` is undefined where the files are
   * only in memory.
   */
  serve(nqn: string, path: string | undefined, access: ExportAccess): void;
  /** Goes on serving it, but differently. */
  change?(nqn: string, access: ExportAccess): void;
  /** It is withdrawn, but those who are connected are served on until {@linkcode Exporter.withdraw}; nobody else is. */
  linger?(nqn: string): void;
  /** Ends it. */
  withdraw(nqn: string): void;
  /** Opens the port that all exports are reached at, or closes it: the router boots. It is open at first. */
  listen?(open: boolean): void;
  /** Ends everything. */
  close?(): Promise<void>;
}

/** The exporter of a simulator whose exports nobody connects to. */
export const noExporter: Exporter = { serve() {}, withdraw() {} };
