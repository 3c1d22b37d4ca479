/** The severity (CSI specification, StorageHealthErrorType). */
export type StorageStatus = "STORAGE_DEGRADED" | "STORAGE_UNREACHABLE";

/** One problem of what all volumes of a node depend on. */
export interface StorageProblem {
  readonly status: StorageStatus;
  /** One CamelCase word for machines; no two problems of a node have the same. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
}

/** One address of a router, as just asked. */
export interface AddressReading {
  /** `address:port`. */
  readonly where: string;
  /** Why it did not answer; undefined when it did. */
  readonly failure: string | undefined;
  /** Whether a connection to it is live; read only for an address that did not answer. */
  readonly live: boolean;
}

/** One read of what all volumes of a node depend on. */
export interface StorageReading {
  /** Why nothing can be connected; undefined when it can. */
  readonly obstacle: string | undefined;
  /** Why the folder of the state files refuses writes; undefined when it does not. */
  readonly stateFailure: string | undefined;
  /** Every address in use. */
  readonly addresses: readonly AddressReading[];
  /** For each volume the addresses of which one is enough, without duplicates. */
  readonly groups: readonly (readonly string[])[];
}

/**
 * Judges what all volumes of a node depend on.
 *
 * An address that does not answer while a connection to it is live is not unreachable: the router may be unable to list
 * its exports, and serve them well.
 */
export function judgeStorage(reading: StorageReading): StorageProblem[] {
  const { obstacle, stateFailure, addresses, groups } = reading;
  const failed = new Map(
    addresses.flatMap((one) => one.failure === undefined ? [] : [[one.where, one]]),
  );
  const isLost = (where: string) => failed.get(where)?.live === false;
  const dark = new Set(groups.filter((group) => group.every(isLost)).flat());
  const silent = [...failed.values()].filter(({ where }) => !dark.has(where));
  const lost = silent.filter(({ live }) => !live);
  const mute = silent.filter(({ live }) => live);
  const darkOnes = [...failed.values()].filter(({ where }) => dark.has(where));
  return [
    ...obstacle === undefined
      ? []
      : [problem("STORAGE_UNREACHABLE", "TransportMissing", `this node cannot connect: ${obstacle}`)],
    ...reported("STORAGE_UNREACHABLE", "RouterUnreachable", "no address of a router answers", darkOnes),
    ...reported("STORAGE_DEGRADED", "AddressUnreachable", "an address of a router does not answer", lost),
    ...reported("STORAGE_DEGRADED", "ExportsNotListed", "a router does not list its exports", mute),
    ...stateFailure === undefined ? [] : [
      problem(
        "STORAGE_DEGRADED",
        "StateNotWritable",
        `nothing can be staged or unstaged because the state folder takes no writes: ${stateFailure}`,
      ),
    ],
  ];
}

function reported(
  status: StorageStatus,
  reason: string,
  message: string,
  addresses: readonly AddressReading[],
): StorageProblem[] {
  if (addresses.length === 0) return [];
  const list = addresses.map(({ where, failure }) => `${where} (${failure})`).join(", ");
  return [problem(status, reason, `${message}: ${list}`)];
}

function problem(status: StorageStatus, reason: string, message: string): StorageProblem {
  return { status, reason, message };
}
