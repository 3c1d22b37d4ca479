/**
 * The closed set of reasons for which this driver refuses or fails.
 *
 * Adapters and rules throw kinds; only `csi/server/grpc_status.ts` maps them to gRPC codes.
 */
export type VolumeErrorKind =
  /** The request itself is wrong and will stay wrong. */
  | "invalid"
  /** The volume, snapshot, path or device is provably not there. */
  | "not-found"
  /** Something of that name exists and differs from the request. */
  | "exists-incompatible"
  /** The object is in use on this node (open, mounted, bound) and must not be touched. */
  | "in-use"
  /** Another node holds the volume. */
  | "published-elsewhere"
  /** The node named in the request is not known to the cluster. */
  | "node-unknown"
  /** The pool or a limit leaves no room for it. */
  | "exhausted"
  /** A size or limit cannot be met. */
  | "out-of-range"
  /** Another call is changing the same volume, or a compare-and-set was lost. */
  | "busy"
  /** The router, the device or the network cannot be asked now; a retry may succeed. */
  | "unavailable"
  /** The device or volume that was found is not provably the requested one. */
  | "identity-mismatch"
  /** A state that a person has to resolve: foreign, damaged, or unsafe to act on. */
  | "precondition"
  /** This driver, or this router, does not support the request. */
  | "unsupported"
  /** The call itself is one that this driver cannot serve, whatever is asked. */
  | "unimplemented"
  /** The caller's deadline passed before the outcome was known. */
  | "deadline"
  /** The caller went away. */
  | "cancelled"
  /** The passphrase opens no key of the volume. */
  | "unauthenticated"
  /** A listing token that this driver never issued. */
  | "bad-token"
  /** A fault of this driver. */
  | "internal";

const retriedKinds: ReadonlySet<VolumeErrorKind> = new Set(
  ["exhausted", "busy", "unavailable", "deadline", "cancelled", "bad-token"],
);

/** Whether a kubelet expects after this error that something may be left on the node; after any other, it does not. */
export function isRetried(error: unknown): boolean {
  return VolumeError.is(error) && retriedKinds.has(error.kind);
}

/** Options of {@linkcode VolumeError}. */
export interface VolumeErrorOptions {
  /** The underlying error: for the log, never for the wire. */
  readonly cause?: unknown;
}

/**
 * The one error that crosses module boundaries in this driver.
 *
 * The message is for people and goes on the wire: "Cannot <verb> <object> because <reason>: <key>=<value>", and what to
 * do next when that is known. It never contains a secret or a stack.
 */
export class VolumeError extends Error {
  override readonly name = "VolumeError";
  /** Why the call was refused or failed. */
  readonly kind: VolumeErrorKind;

  constructor(kind: VolumeErrorKind, message: string, options: VolumeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
  }

  /** Whether `error` is a VolumeError, of the given kind if there is one. */
  static is(error: unknown, kind?: VolumeErrorKind): error is VolumeError {
    return error instanceof VolumeError && (kind === undefined || error.kind === kind);
  }
}
