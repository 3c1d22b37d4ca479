/** The severity (CSI specification, VolumeHealthErrorType). */
export type HealthStatus = "DEGRADED" | "INACCESSIBLE" | "DATA_LOSS";

/** One problem of a volume. */
export interface HealthProblem {
  readonly status: HealthStatus;
  /** One CamelCase word for machines. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
}

/** A volume and its problems; none when it is healthy. */
export interface VolumeHealth {
  readonly id: string;
  readonly problems: readonly HealthProblem[];
}
