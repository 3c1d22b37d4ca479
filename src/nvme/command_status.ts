/** Why a target did not execute a command (NVM Express Base Specification, "Status Field"). */
export interface Status {
  /** Status code type: 0 generic, 1 of the command, 2 media, 3 path. */
  readonly type: number;
  readonly code: number;
  /** Whether the same command would fail again. */
  readonly doNotRetry: boolean;
}

const text: Readonly<Record<number, Readonly<Record<number, string>>>> = {
  0: {
    0x01: "invalid opcode",
    0x02: "invalid field",
    0x04: "data transfer error",
    0x06: "internal error",
    0x07: "abort requested",
    0x08: "aborted as its queue was deleted",
    0x0b: "invalid namespace or format",
    0x0c: "command sequence error",
    0x0f: "invalid data length",
    0x19: "keep-alive timer expired",
    0x1a: "invalid keep-alive timeout",
    0x20: "namespace is write protected",
    0x22: "transient transport error",
    0x80: "LBA out of range",
    0x81: "capacity exceeded",
    0x82: "namespace not ready",
  },
  1: {
    0x80: "connect: incompatible format",
    0x81: "connect: controller busy",
    0x82: "connect: invalid parameters",
    0x83: "connect: restart discovery",
    0x84: "connect: invalid host",
    0x91: "authentication required",
  },
  2: { 0x80: "write fault", 0x81: "unrecovered read error" },
  3: { 0x00: "internal path error", 0x60: "controller pathing error", 0x71: "aborted by host" },
};

/** Describes a status with its numbers: `invalid field (0/0x02)`. */
export function describeStatus({ type, code }: Status): string {
  const numbers = `${type}/0x${code.toString(16).padStart(2, "0")}`;
  const known = text[type]?.[code];
  return known === undefined ? `status ${numbers}` : `${known} (${numbers})`;
}

/** The status of a refused command: the cause of the VolumeError that reports it. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;
  /** The first eight bytes of the completion, which may give details. */
  readonly result: bigint;

  constructor(status: Status, result: bigint) {
    super(describeStatus(status));
    this.status = status;
    this.result = result;
  }
}
