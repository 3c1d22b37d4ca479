import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type GrpcCodeName, isFault } from "./grpc_status.ts";

/** What is known about a call once it is answered. */
export interface CallRecord {
  readonly requestId: string;
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly changing: boolean;
  /** The volume it is about, if the request names one. */
  readonly volumeId: string | undefined;
  readonly code: GrpcCodeName;
  readonly durationMs: number;
  /** What the handler threw, whole; undefined when it succeeded. */
  readonly error: unknown;
}

/**
 * Writes the one line of a call: changing calls at info, all others at debug, and what is a fault of this driver at
 * error whatever the method.
 */
export function logCall(log: Logger, record: CallRecord): void {
  const level = isFault(record.code) ? "error" : record.changing ? "info" : "debug";
  log[level]("call", () => ({ ...callFields(record), ...errorFields(record) }));
}

/**
 * Tells that a handler went on after its caller had been answered, and how it ended: at debug, because the call has its
 * line already, unless it uncovered a fault.
 */
export function logLateEnd(log: Logger, record: CallRecord): void {
  const level = isFault(record.code) ? "error" : "debug";
  log[level]("call ended after its answer", () => ({ ...callFields(record), ...errorFields(record) }));
}

function callFields(record: CallRecord): Record<string, unknown> {
  return {
    method: record.path,
    ...(record.volumeId === undefined ? {} : { volumeId: record.volumeId }),
    code: record.code,
    ms: Math.round(record.durationMs),
    requestId: record.requestId,
  };
}

/** Faults are logged with stacks, for whoever mends the driver; the rest as the messages of the chain of causes. */
function errorFields({ code, error }: CallRecord): Record<string, unknown> {
  if (error === undefined && code === "OK") return {};
  if (isFault(code)) return { error: error instanceof Error ? error : String(error) };
  const causes = causeMessages(error);
  return {
    error: error instanceof Error ? error.message : String(error),
    ...(causes.length === 0 ? {} : { causes }),
  };
}

/** At most this many causes are followed, so that a chain that bites its tail ends. */
const MAX_CAUSES = 8;

function causeMessages(error: unknown): readonly string[] {
  const messages: string[] = [];
  let cause = error instanceof Error ? error.cause : undefined;
  while (cause !== undefined && messages.length < MAX_CAUSES) {
    const kind = VolumeError.is(cause) ? `${cause.kind}: ` : "";
    messages.push(cause instanceof Error ? `${kind}${cause.message}` : String(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return messages;
}
