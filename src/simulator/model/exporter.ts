/** Makes what is exported reachable for initiators. */
export interface Exporter {
  /** Serves a file under a subsystem NQN. `path` is undefined where the files are only in memory. */
  serve(nqn: string, path: string | undefined): void;
  /** Ends it. */
  withdraw(nqn: string): void;
}

/** The exporter of a simulator whose exports nobody connects to. */
export const noExporter: Exporter = { serve() {}, withdraw() {} };
