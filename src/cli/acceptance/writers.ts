import type { HostLink, HostSide } from "../../doctor/probe/question.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { nqnPrefix } from "./names.ts";

/** The size of a numbered block, in bytes. */
export const blockBytes = 4096;
const magic = 0x72647361;

/** Who writes numbered blocks to an exported volume, one after the other, each synced. */
export interface BlockWriter {
  /** Writes and syncs the block of that number; rejects when it is not known to be on the disk. */
  write(number: number): Promise<void>;
  close(): Promise<void>;
}

/** This machine's kernel as the writer, to a device. */
export async function kernelWriter(path: string): Promise<BlockWriter> {
  const file = await Deno.open(path, { write: true });
  return {
    async write(number) {
      await file.seek(number * blockBytes, Deno.SeekMode.Start);
      const block = numberedBlock(number);
      for (let written = 0; written < block.length;) written += await file.write(block.subarray(written));
      await file.syncData();
    },
    close() {
      file.close();
      return Promise.resolve();
    },
  };
}

/** This process as the writer, where the kernel has no NVMe/TCP: a host of the export. */
export async function hostWriter(host: HostSide, nqn: string, context: CallContext): Promise<BlockWriter> {
  const link = await host.connect(nqn, writingHost, context);
  const perBlock = blockBytes / await link.blockBytes(context);
  return {
    async write(number) {
      await link.write(BigInt(number * perBlock), numberedBlock(number), context);
      await link.flush(context);
    },
    close: async () => await link[Symbol.asyncDispose](),
  };
}

const writingHost = { nqn: `${nqnPrefix}:host`, id: "9f6d6a5e-6c3f-4c0e-8f5a-0a1f7f6f2a01" };
/** A host that reads, beside the one that writes. */
export const readingHost = { nqn: `${nqnPrefix}:reader`, id: "9f6d6a5e-6c3f-4c0e-8f5a-0a1f7f6f2a02" };

/** Which of the first `count` numbered blocks are on a volume; the other ones have to be empty, or are "other". */
export async function readNumbered(
  link: HostLink,
  count: number,
  context: CallContext,
): Promise<readonly ("there" | "empty" | "other")[]> {
  const found: ("there" | "empty" | "other")[] = [];
  const perBlock = blockBytes / await link.blockBytes(context);
  for (let number = 0; number < count; number++) {
    const block = await link.read(BigInt(number * perBlock), perBlock, context);
    found.push(judgeBlock(block, number));
  }
  return found;
}

function judgeBlock(block: Uint8Array, number: number): "there" | "empty" | "other" {
  if (block.every((byte) => byte === 0)) return "empty";
  const wanted = numberedBlock(number);
  return block.length === wanted.length && block.every((byte, at) => byte === wanted[at]) ? "there" : "other";
}

function numberedBlock(number: number): Uint8Array {
  const words = new Uint32Array(blockBytes / 4);
  words.forEach((_, at) => words[at] = (magic ^ Math.imul(number + 1, 2654435761) ^ at) >>> 0);
  return new Uint8Array(words.buffer);
}
