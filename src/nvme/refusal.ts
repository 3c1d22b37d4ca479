import { VolumeError } from "../volume/errors.ts";
import { StatusError } from "./command_status.ts";

/** Why a target refused a Connect, as far as its status tells. */
export type Refusal =
  /** There is no such subsystem at that address and port. */
  | "no-subsystem"
  /** The subsystem is there, and this host is not on its list. */
  | "host"
  /** It has no controller to spare. */
  | "busy"
  | "other";

/** Status code type of what is a path's fault (NVM Express Base Specification, "Path Related Status"). */
const pathRelated = 3;

/** The cause of the VolumeError in which a refused Connect is reported. */
class ConnectRefusal extends StatusError {
  readonly refusal: Refusal;

  constructor({ status, result }: StatusError) {
    super(status, result);
    this.refusal = classify(status.type, status.code, result);
  }
}

/** Why the target refused to connect; undefined when `error` is anything else than such a refusal. */
export function refusalOf(error: unknown): Refusal | undefined {
  return VolumeError.is(error) && error.cause instanceof ConnectRefusal ? error.cause.refusal : undefined;
}

/**
 * Whether the target answered a command and did not carry it out, for a reason that is no path's: a host does not try such a
 * command again on another path.
 */
export function isRefusedCommand(error: unknown): boolean {
  return VolumeError.is(error) && error.cause instanceof StatusError &&
    error.cause.status.type !== pathRelated;
}

/** Says what a refused Connect means; any other error is given back as it is. */
export function explainRefusal(error: unknown, nqn: string, hostNqn: string): unknown {
  if (!VolumeError.is(error) || !(error.cause instanceof StatusError)) return error;
  const cause = new ConnectRefusal(error.cause);
  const facts = `status="${cause.message}" nqn=${nqn} hostnqn=${hostNqn}`;
  return new VolumeError(
    "unavailable",
    `Cannot connect to the NVMe subsystem because ${text[cause.refusal](facts)}`,
    {
      cause,
    },
  );
}

const text: Readonly<Record<Refusal, (facts: string) => string>> = {
  "no-subsystem": (facts) => `the target has none of that name: ${facts}`,
  host: (facts) => `the target refuses this host: ${facts}; its allow-list has to name this host's NQN`,
  busy: (facts) => `the target has no controller to spare: ${facts}`,
  other: (facts) => `the target refused: ${facts}`,
};

/** With "invalid parameters" the result is the offset of the wrong one, and says whether that is into the data. */
function classify(type: number, code: number, result: bigint): Refusal {
  if (type !== 1) return "other";
  if (code === 0x84) return "host";
  if (code === 0x81) return "busy";
  const inData = (result >> 16n & 1n) === 1n;
  return code === 0x82 && inData && (result & 0xffffn) === subsystemNqnOffset ? "no-subsystem" : "other";
}

/** Where the subsystem's NQN lies in the data of a Connect. */
const subsystemNqnOffset = 256n;
