import type { CallContext } from "../../volume/ports/system.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Messages, Sent } from "./proto.ts";

/**
 * A method of a CSI service: no try/catch, no status codes, no logging. It throws {@linkcode VolumeError} kinds, and
 * its wrapper does the rest.
 *
 * `context.signal` is aborted when the client goes away, when its deadline passes and when the server stops for good.
 * The client is answered at that moment, whatever the handler does; the lock of the volume is held until the promise
 * settles. A handler that leaves work running (mkfs) must therefore not settle before that work has ended.
 */
export type UnaryHandler<Req, Res> = (request: Req, context: CallContext) => Promise<Res>;

/**
 * The keys that a call locks: a volume id, several (CreateVolume: the id that its name will get, and the name), or
 * undefined when the request names none. Empty strings lock nothing. The first one is the volume of the log line.
 */
export type LockKey = string | readonly string[] | undefined;

/** A method that only reads: it takes no lock and is logged at debug. */
export interface ReadingMethod<Req, Res> {
  readonly changing: false;
  readonly handler: UnaryHandler<Req, Res>;
}

/** A method that changes something: one call at a time for a key, and one log line for each. */
export interface ChangingMethod<Req, Res> {
  readonly changing: true;
  /**
   * Pure and synchronous, because checking and taking the lock is one step. It gets the request before the handler has
   * checked it; a {@linkcode VolumeError} that it throws is the answer of the call.
   */
  readonly lockKey: (request: Req) => LockKey;
  readonly handler: UnaryHandler<Req, Res>;
  /**
   * Called without the lock when another call holds it, before the call is answered so. An error that it throws is the
   * answer instead.
   */
  readonly whenBusy?: (request: Req, context: CallContext) => Promise<void>;
}

/** A method as it is registered with the server. */
export type Method<Req, Res> = ReadingMethod<Req, Res> | ChangingMethod<Req, Res>;

/** Describes a method; it only serves to infer the types. */
export function method<Req, Res>(description: Method<Req, Res>): Method<Req, Res> {
  return description;
}

/**
 * The methods of one service, by the names of the proto (`CreateVolume`). A missing one answers UNIMPLEMENTED.
 *
 * This is the untyped form that the server takes; `MethodsOf<ControllerRpcs>` is the typed one to write against.
 */
export type ServiceMethods = Readonly<Record<string, Method<never, unknown> | undefined>>;

/** The request of a method, by the service's generated interface. */
export type RequestOf<Service extends Messages<Service>, Name extends keyof Service> = Service[Name][
  "request"
];

/** The response of a method, see {@linkcode RequestOf}. */
export type ResponseOf<Service extends Messages<Service>, Name extends keyof Service> = Sent<
  Service[Name]["response"]
>;

/** A handler that also gets the subject of the request, such as a volume on its router. */
export type HandlerOf<Service extends Messages<Service>, Name extends keyof Service, Subject> = (
  subject: Subject,
  request: RequestOf<Service, Name>,
  context: CallContext,
) => Promise<ResponseOf<Service, Name>>;

/**
 * The methods of a service, typed by its generated interface:
 *
 * ```ts
 * const methods: MethodsOf<ControllerRpcs> = {
 *   DeleteVolume: method({ changing: true, lockKey: (request) => request.volumeId, handler: deleteVolume }),
 * };
 * ```
 */
export type MethodsOf<Service extends Messages<Service>> = {
  readonly [Name in keyof Service]?: Method<RequestOf<Service, Name>, ResponseOf<Service, Name>>;
};

/** Releases the keys that were taken. A second call does nothing. */
type Release = () => void;

interface Holder {
  readonly name: string;
  readonly onWanted: () => void;
}

/**
 * The volumes that calls are changing: one changing call for each key, and a second one is refused at once.
 *
 * Checking and taking is one synchronous step. An `await` between the two would let two calls both find a key free.
 */
export class VolumeLocks {
  readonly #holders = new Map<string, Holder>();

  /**
   * Takes all keys or none; `holder` names the call in the refusals of others.
   *
   * @param onWanted called each time another call is refused one of the keys; it must not throw
   * @throws {VolumeError} busy when another call holds one of the keys
   */
  take(keys: readonly string[], holder: string, onWanted: () => void = () => {}): Release {
    for (const key of keys) {
      const other = this.#holders.get(key);
      if (other === undefined) continue;
      other.onWanted();
      throw new VolumeError(
        "busy",
        `Cannot change ${key} because another call is changing it: held by ${other.name}`,
      );
    }
    const taken = new Set(keys);
    for (const key of taken) this.#holders.set(key, { name: holder, onWanted });
    return () => {
      for (const key of taken) this.#holders.delete(key);
      taken.clear();
    };
  }

  /** Like {@linkcode VolumeLocks.take}, but returns undefined when another call holds one of the keys. */
  tryTake(keys: readonly string[], holder: string, onWanted?: () => void): Release | undefined {
    const held = keys.find((key) => this.#holders.has(key));
    if (held === undefined) return this.take(keys, holder, onWanted);
    this.#holders.get(held)!.onWanted();
    return undefined;
  }

  /** The number of held keys. */
  get size(): number {
    return this.#holders.size;
  }
}

/** The keys of a request as a list, without empty ones. */
export function lockKeys(key: LockKey): readonly string[] {
  const keys = key === undefined ? [] : typeof key === "string" ? [key] : key;
  return keys.filter((each) => each !== "");
}
