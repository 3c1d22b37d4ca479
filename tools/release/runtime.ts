import { createHash } from "node:crypto";
import type { Architecture } from "../image/root.ts";
import type { Compiler } from "./sbom.ts";

/** The runtime in the executable of a platform. */
export interface Runtime {
  readonly architecture: Architecture;
  /** SHA-256 of the runtime's file, in hex. */
  readonly digest: string;
}

/**
 * Reads the Deno that compiles.
 *
 * @param pins the SHA-256 of each pinned one, in the form of `sha256sum`
 */
export async function readCompiler(file: string, pins: string): Promise<Compiler> {
  const digest = createHash("sha256").update(await Deno.readFile(file)).digest("hex");
  return { digest, isPinned: pins.split("\n").some((line) => line.startsWith(`${digest} `)) };
}

/**
 * The SHA-256 of the runtime with which an executable begins, in hex, wherever the compiler had it from. `deno compile`
 * writes its file unchanged, which ends with its table of sections (elf(5)), and puts the program after it.
 *
 * @throws {Error} when it does not begin with a whole ELF file
 */
export async function runtimeDigest(executable: string): Promise<string> {
  const bytes = await Deno.readFile(executable);
  const head = new DataView(bytes.buffer);
  const isElf = bytes.length > 64 && head.getUint32(0) === 0x7f454c46;
  const end = isElf
    ? Number(head.getBigUint64(0x28, true)) + head.getUint16(0x3a, true) * head.getUint16(0x3c, true)
    : 0;
  if (end === 0 || end >= bytes.length) {
    throw new Error(`${executable} is no runtime with a program after it`);
  }
  return createHash("sha256").update(bytes.subarray(0, end)).digest("hex");
}
