import { limitSignal } from "../async/deadline.ts";
import type { KernelFiles, MemoryFile } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import { headerBytes, headerLabel } from "../volume/model/encryption.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { copyBytes, copyOffsets, formatHeader, type LuksHeader, parseHeader } from "./luks_header.ts";
import { areasEnd } from "./luks_metadata.ts";

const readTimeoutMs = 30_000;

/** Reads devices, and keeps copies. */
export interface HeaderReading {
  readonly files: Pick<KernelFiles, "memoryFile" | "readDirect">;
  readonly clock: Clock;
}

/** A device that is kept open. */
export interface HeldPath {
  /** The path for the reads and writes of any process. */
  readonly path: string;
  /** What people know it by. */
  readonly device: string;
}

/**
 * A copy of a device's header in memory, which tools read and change in its place: whoever owns the device's bytes may
 * answer a second read of them otherwise. It holds what was checked, and the areas of the keys.
 */
export class HeaderCopy implements Disposable {
  readonly #files: Pick<KernelFiles, "memoryFile">;
  readonly #memory: MemoryFile;
  /** What people know the device by. */
  readonly device: string;
  /** The header as it was when the copy was made. */
  readonly header: LuksHeader;

  private constructor(
    files: Pick<KernelFiles, "memoryFile">,
    bytes: Uint8Array,
    header: LuksHeader,
    device: string,
  ) {
    this.#files = files;
    this.device = device;
    this.header = header;
    const content = bytes.slice();
    content.set(formatHeader(header));
    this.#memory = files.memoryFile(content, Number(headerBytes));
  }

  /**
   * Reads the header of a device, once.
   *
   * @throws {VolumeError} precondition, naming the field, when it is not one that this driver makes; unavailable when it
   *   cannot be read
   */
  static async read(reading: HeaderReading, held: HeldPath, context: CallContext): Promise<HeaderCopy> {
    const bytes = await readBegin(reading, held, areasEnd, context);
    return new HeaderCopy(reading.files, bytes, parseHeader(bytes, held.device), held.device);
  }

  /** Where tools find it, for as long as it is not disposed of. */
  get path(): string {
    return this.#memory.path;
  }

  /**
   * What tools have made of this copy, as the header of a complete volume.
   *
   * @throws {VolumeError} precondition when that is no header that this driver makes
   */
  completed(): HeaderCopy {
    const bytes = this.#memory.read(areasEnd);
    const header = parseHeader(bytes, this.device);
    return new HeaderCopy(
      this.#files,
      bytes,
      { ...header, label: headerLabel, seqid: header.seqid + 1n },
      this.device,
    );
  }

  /** Whether those are its first bytes. */
  beginsWith(bytes: Uint8Array): boolean {
    return Buffer.compare(this.#memory.read(bytes.length), bytes) === 0;
  }

  [Symbol.dispose](): void {
    this.#memory.release();
  }
}

/** A change of a header on its device. */
export interface HeaderChange {
  readonly held: HeldPath;
  /** What was read from the device. */
  readonly before: LuksHeader;
  readonly after: HeaderCopy;
}

/**
 * Writes a changed header to its device. After a kill at any moment the device has the whole header of before or that of
 * after: first come the areas of new keys, where there were none, then one copy after the other, the damaged or earlier
 * one first, and at last the areas of keys that are gone.
 *
 * @throws {VolumeError} unavailable when a write fails, or the device does not show it afterwards
 */
export async function writeHeader(
  reading: HeaderReading,
  processes: Processes,
  { held, before, after }: HeaderChange,
  context: CallContext,
): Promise<void> {
  const write = async (offset: number, length: number) => {
    const result = await processes.run("dd", {
      args: [
        `if=${after.path}`,
        `of=${held.path}`,
        `bs=${length}`,
        "count=1",
        `skip=${offset}`,
        `seek=${offset}`,
        "iflag=fullblock,skip_bytes",
        "oflag=direct,seek_bytes",
        "conv=nocreat,notrunc,fsync",
        "status=none",
      ],
      signal: context.signal,
      subject: held.device,
      mustFinish: true,
    });
    if (result.code === 0) return;
    throw new VolumeError(
      "unavailable",
      `Cannot write the header: device=${held.device} offset=${offset}: ${complaint(result)}`,
    );
  };
  for (const area of areasOnlyOf(after.header, before)) await write(...area);
  const { lesser } = before;
  for (const index of [lesser, 1 - lesser]) await write(copyOffsets[index]!, copyBytes);
  for (const area of areasOnlyOf(before, after.header)) await write(...area);
  if (after.beginsWith(await readBegin(reading, held, 2 * copyBytes, context))) return;
  throw new VolumeError(
    "unavailable",
    `Cannot write the header because the device does not show it afterwards: device=${held.device}`,
  );
}

async function readBegin(
  { files, clock }: HeaderReading,
  { path }: HeldPath,
  length: number,
  { signal }: CallContext,
): Promise<Uint8Array> {
  using limited = limitSignal(clock, signal, readTimeoutMs);
  const [bytes] = await files.readDirect(path, [{ offset: 0n, length }], limited.signal);
  return bytes!;
}

/** Offset and length of the areas that only the first of two headers has. */
function areasOnlyOf(of: LuksHeader, other: LuksHeader): readonly (readonly [number, number])[] {
  const areas = ({ metadata }: LuksHeader) => Object.values(metadata.keyslots).map(({ area }) => area);
  const known = new Set(areas(other).map(({ offset }) => offset));
  return areas(of).filter(({ offset }) => !known.has(offset)).map(({ offset, size }) =>
    [Number(offset), Number(size)] as const
  );
}
