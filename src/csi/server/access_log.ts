import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { type GrpcCodeName, isFault } from "./grpc_status.ts";
import { METHOD_MESSAGES, SECRET_FIELDS } from "../generated/secrets.ts";

/** The facts about an answered call. */
export interface CallRecord {
  readonly requestId: string;
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly changing: boolean;
  /** The volume it is about, if the request names one. */
  readonly volumeId: string | undefined;
  readonly code: GrpcCodeName;
  readonly durationMs: number;
  /** The complete error that the handler threw; undefined when it succeeded. */
  readonly error: unknown;
}

/**
 * Writes the one line of a call: changing calls at info, or at warn when they failed for another reason than that they are still
 * going on, all others at debug, and a fault of this driver at error for every method.
 */
export function logCall(log: Logger, record: CallRecord): void {
  const isOrdinary = ["OK", "ABORTED", "CANCELLED"].includes(record.code);
  const ofChange = isOrdinary ? "info" : "warn";
  const level = faultOf(record) !== undefined ? "error" : record.changing ? ofChange : "debug";
  log[level]("call", () => ({ ...callFields(record), ...errorFields(record) }));
}

/**
 * Logs that a handler went on after its caller had been answered, and how it ended: at debug, because the call has its
 * line already, unless it shows a fault.
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

/** Logs faults with their stacks, for developers; other errors as the messages of their chain of causes. */
function errorFields(record: CallRecord): Record<string, unknown> {
  const { code, error } = record;
  if (error === undefined && code === "OK") return {};
  const fault = faultOf(record);
  if (fault !== undefined) return { error: fault instanceof Error ? fault : String(fault) };
  const causes = causeMessages(error);
  return {
    error: messageOf(error),
    ...(causes.length === 0 ? {} : { causes }),
  };
}

/**
 * The fault of this driver in a call that failed; undefined where there is none. A node hides one behind UNAVAILABLE while
 * something of the volume is left.
 */
function faultOf({ code, error }: CallRecord): unknown {
  if (isFault(code)) return error ?? code;
  let cause = error;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth++) {
    if (VolumeError.is(cause, "internal")) return cause.cause ?? cause;
    cause = cause.cause;
  }
  return undefined;
}

/** The most causes that are followed, so that a cyclic chain ends. */
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

const REDACTED = "[redacted]";

/**
 * Mount flags are not marked csi_secret, but "MAY contain sensitive information" (CSI v1.13.0,
 * VolumeCapability.MountVolume). `secrets` is the name of every secret field of the specification, as a second line of
 * defence.
 */
const ALWAYS_REDACTED: ReadonlySet<string> = new Set(["mountFlags", "secrets"]);

/**
 * A copy of a request that may be logged: fields marked csi_secret, mount flags and empty values are left out or
 * replaced. Nothing of a request of an unknown method is printed.
 */
export function redactRequest(path: string, request: unknown): unknown {
  const messages = METHOD_MESSAGES.get(path);
  if (messages === undefined) return REDACTED;
  return copy(request, new Set([...SECRET_FIELDS.get(messages.request) ?? [], ...ALWAYS_REDACTED]));
}

function copy(value: unknown, secret: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((item) => copy(item, secret));
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).filter(([, field]) => !isEmpty(field));
  return Object.fromEntries(
    entries.map(([name, field]) => [name, secret.has(name) ? REDACTED : copy(field, secret)]),
  );
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
