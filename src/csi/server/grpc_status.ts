import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import { printable } from "../../volume/model/printable.ts";

/** The gRPC codes by name (grpc/doc/statuscodes.md), repeated here so that rules and tests do not load gRPC. */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** The name of a gRPC code, such as `FAILED_PRECONDITION`. */
export type GrpcCodeName = keyof typeof GRPC_CODES;

/** The status of a failed call. */
export interface WireStatus {
  readonly code: GrpcCodeName;
  /** For people: no stack, no secret, and for an unexpected error only the request id. */
  readonly details: string;
}

/**
 * The one table from kinds to gRPC codes (CSI v1.13.0, "Error Scheme" and the tables of each call).
 *
 * `unsupported` is INVALID_ARGUMENT rather than UNIMPLEMENTED because that would deny the whole method.
 */
const CODES: Readonly<Record<VolumeErrorKind, GrpcCodeName>> = {
  "invalid": "INVALID_ARGUMENT",
  "not-found": "NOT_FOUND",
  "exists-incompatible": "ALREADY_EXISTS",
  "in-use": "FAILED_PRECONDITION",
  "published-elsewhere": "FAILED_PRECONDITION",
  "node-unknown": "NOT_FOUND",
  "exhausted": "RESOURCE_EXHAUSTED",
  "out-of-range": "OUT_OF_RANGE",
  "busy": "ABORTED",
  "unavailable": "UNAVAILABLE",
  "identity-mismatch": "FAILED_PRECONDITION",
  "precondition": "FAILED_PRECONDITION",
  "unsupported": "INVALID_ARGUMENT",
  "unimplemented": "UNIMPLEMENTED",
  "deadline": "DEADLINE_EXCEEDED",
  "cancelled": "CANCELLED",
  "unauthenticated": "UNAUTHENTICATED",
  "bad-token": "ABORTED",
  "internal": "INTERNAL",
};

/** Longest details of an error, because they travel in a header and then in a Kubernetes event. */
const MAX_DETAILS_LENGTH = 2048;

/** Returns the status that the client gets for `error`. */
export function wireStatus(error: unknown, requestId: string): WireStatus {
  if (!VolumeError.is(error)) {
    return {
      code: "INTERNAL",
      details: `Internal error; the driver's log has the reason: request=${requestId}`,
    };
  }
  return { code: CODES[error.kind], details: details(error.message) };
}

/** Whether the code means a fault of this driver, which is logged at error for every method. */
export function isFault(code: GrpcCodeName): boolean {
  return code === "INTERNAL" || code === "UNKNOWN";
}

/** Returns the message for people, cut to its maximum length, without half surrogate pairs (their percent-encoding throws). */
function details(message: string): string {
  const text = printable(message);
  const cut = text.length <= MAX_DETAILS_LENGTH ? text : `${text.slice(0, MAX_DETAILS_LENGTH)}…`;
  return cut.toWellFormed();
}
