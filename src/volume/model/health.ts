/** How bad it is (CSI specification, VolumeHealthErrorType). */
export type HealthStatus = "DEGRADED" | "INACCESSIBLE" | "DATA_LOSS";

/** One thing that is wrong with a volume. */
export interface HealthProblem {
  readonly status: HealthStatus;
  /** One CamelCase word for machines. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
}

/** A volume and what is wrong with it; nothing when it is healthy. */
export interface VolumeHealth {
  readonly id: string;
  readonly problems: readonly HealthProblem[];
}
