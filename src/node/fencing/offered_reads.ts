import { SingleFlight } from "../../async/single_flight.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { OfferedRead } from "../../volume/rules/fence.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { TargetAddress } from "../../volume/ports/node_ports.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeDeps } from "../deps.ts";

/** How long a target may take to answer what it offers. */
const readMs = 10_000;

/** A read, with its begin in milliseconds since the Unix epoch. */
export interface TimedRead extends OfferedRead {
  readonly beganMs: number;
}

/** Asks targets what they offer. Each target gets one question at a time, and no further one while that hangs. */
export class TargetReader {
  readonly #deps: NodeDeps;
  readonly #reads = new SingleFlight<TimedRead>();
  readonly #hanging = new Set<string>();

  constructor(deps: NodeDeps) {
    this.#deps = deps;
  }

  /** Reads what a target offers. Calls during a read share its answer. Rejects only for a fault. */
  read(at: TargetAddress): Promise<TimedRead> {
    const key = keyOf(at);
    return this.#reads.run(() => this.#read(at, key), key);
  }

  async #read(at: TargetAddress, key: string): Promise<TimedRead> {
    const { clock, connector } = this.#deps;
    const { address, port } = at;
    const beganMs = clock.now();
    if (this.#hanging.has(key)) return { address, port, offered: undefined, beganMs };
    const ask = async (context: CallContext) => {
      this.#hanging.add(key);
      try {
        return await connector.offered({ address, port }, context);
      } finally {
        this.#hanging.delete(key);
      }
    };
    try {
      // The read has its own signal, because several callers share it and none may end it for the others.
      const { signal } = new AbortController();
      const context = { requestId: `offered-${key}`, signal };
      const offered = await withDeadline(clock, context, readMs, "read the discovery log", ask);
      return { address, port, offered, beganMs };
    } catch (error) {
      if (VolumeError.is(error)) return { address, port, offered: undefined, beganMs };
      throw error;
    }
  }
}

/** The answers of one check, so that a hundred volumes of one target ask it once. */
export class OfferedReads {
  readonly #reader: TargetReader;
  readonly #known = new Map<string, Promise<TimedRead>>();

  constructor(reader: TargetReader) {
    this.#reader = reader;
  }

  /** Reads what each target offers, each once. */
  async readAll(locations: readonly TargetAddress[]): Promise<readonly TimedRead[]> {
    return await Promise.all(new Map(locations.map((at) => [keyOf(at), this.#read(at)])).values());
  }

  #read(at: TargetAddress): Promise<TimedRead> {
    const known = this.#known.get(keyOf(at)) ?? this.#reader.read(at);
    this.#known.set(keyOf(at), known);
    return known;
  }
}

function keyOf({ address, port }: TargetAddress): string {
  return `${address} ${port}`;
}
