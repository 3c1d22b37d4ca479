import { VolumeError } from "../volume/errors.ts";
import { StatusError } from "./command_status.ts";

/** Why a target refused a Connect, as far as its status shows. */
export type Refusal =
  /** There is no such subsystem at that address and port. */
  | "no-subsystem"
  /** The subsystem exists, and this host is not on its list. */
  | "host"
  /** The target has no free controller. */
  | "busy"
  | "other";

/** The status code type of path errors (NVM Express Base Specification, "Path Related Status"). */
const pathRelated = 3;

/** The cause of the VolumeError that reports a refused Connect. */
class ConnectRefusal extends StatusError {
  readonly refusal: Refusal;

  constructor({ status, result }: StatusError) {
    super(status, result);
    this.refusal = classify(status.type, status.code, result);
  }
}

/** Why the target refused to connect; undefined when `error` is no such refusal. */
export function refusalOf(error: unknown): Refusal | undefined {
  return VolumeError.is(error) && error.cause instanceof ConnectRefusal ? error.cause.refusal : undefined;
}

/**
 * Whether the target answered and refused a command for a reason that is not the path's: a host does not retry such a
 * command on another path.
 */
export function isRefusedCommand(error: unknown): boolean {
  return VolumeError.is(error) && error.cause instanceof StatusError &&
    error.cause.status.type !== pathRelated;
}

/** Explains a refused Connect; returns any other error unchanged. */
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

/**
 * With "invalid parameters" the result is the offset of the wrong one, and says whether it is an offset into the data.
 */
function classify(type: number, code: number, result: bigint): Refusal {
  if (type !== 1) return "other";
  if (code === 0x84) return "host";
  if (code === 0x81) return "busy";
  const inData = (result >> 16n & 1n) === 1n;
  return code === 0x82 && inData && (result & 0xffffn) === subsystemNqnOffset ? "no-subsystem" : "other";
}

/** The offset of the subsystem's NQN in the data of a Connect. */
const subsystemNqnOffset = 256n;
