import { Buffer } from "node:buffer";
import type {
  handleUnaryCall,
  MethodDefinition,
  sendUnaryData,
  ServerUnaryCall,
  ServiceDefinition,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/log.ts";
import { type Method, type ServiceMethods, VolumeLocks } from "./call.ts";
import type { CallAnswer, CallRunner } from "./call_runner.ts";
import { GRPC_CODES } from "./grpc_status.ts";

/**
 * Turns methods into what grpc-js registers. Each service has its own locks. The controller changes the router's state
 * of a volume, and the node the machine's: withdrawing a volume must not wait for a mkfs that hangs on a node in the
 * same process.
 */
export function implementation(
  definition: ServiceDefinition,
  methods: ServiceMethods,
  runner: CallRunner,
  locks = new VolumeLocks(),
): UntypedServiceImplementation {
  const handlers: UntypedServiceImplementation = {};
  for (const [name, method] of Object.entries(methods)) {
    const path = definition[name]?.path;
    if (path === undefined) {
      throw new TypeError(`Cannot register ${name} because the service has no such method`);
    }
    if (method !== undefined) handlers[name] = unary(path, method, locks, runner);
  }
  return handlers;
}

/** Entries of a list that are encoded at once: each takes a dozen objects until it is bytes. */
const entriesAtOnce = 256;

/**
 * Returns the definition with serializers that log every response that cannot be encoded: grpc-js reports it only to
 * the client. Long lists are encoded in pieces.
 */
export function withEncodingLog(definition: ServiceDefinition, log: Logger): ServiceDefinition {
  return Object.fromEntries(
    Object.entries(definition).map(([name, method]) => [name, loggingMethod(method, log)]),
  );
}

function loggingMethod<T extends MethodDefinition<unknown, unknown>>(method: T, log: Logger): T {
  return {
    ...method,
    responseSerialize(value: unknown) {
      try {
        return encode((part) => method.responseSerialize(part), value);
      } catch (error) {
        log.error("cannot encode a response", { method: method.path, error });
        throw error;
      }
    },
  };
}

/** Two encoded messages in a row are one message with the entries of both (Protocol Buffers, "Encoding"). */
function encode(serialize: (value: unknown) => Buffer, value: unknown): Buffer {
  const { entries } = value as { readonly entries?: unknown };
  if (!Array.isArray(entries) || entries.length <= entriesAtOnce) return serialize(value);
  const pieces: Buffer[] = [];
  for (let begun = 0; begun < entries.length; begun += entriesAtOnce) {
    const some = { entries: entries.slice(begun, begun + entriesAtOnce) };
    pieces.push(serialize(begun === 0 ? { ...value as object, ...some } : some));
  }
  return Buffer.concat(pieces);
}

function unary(
  path: string,
  method: Method<never, unknown>,
  locks: VolumeLocks,
  runner: CallRunner,
): handleUnaryCall<unknown, unknown> {
  return async (call: ServerUnaryCall<unknown, unknown>, callback: sendUnaryData<unknown>) => {
    const answer = await runner.run(method, locks, {
      path,
      request: call.request,
      deadlineMs: Number(call.getDeadline()),
      onCancel(listener) {
        if (call.cancelled) listener();
        else call.once("cancelled", listener);
      },
    });
    send(answer, callback);
  };
}

function send(answer: CallAnswer, callback: sendUnaryData<unknown>): void {
  if (answer.ok) callback(null, answer.response);
  else callback({ code: GRPC_CODES[answer.code], details: answer.details });
}
