import { VolumeError } from "../../src/volume/errors.ts";
import type {
  DevicePart,
  HeldDevice,
  KernelFiles,
  MemoryFile,
  NodeInfo,
} from "../../src/host/kernel_files.ts";

/** A /proc, /sys and /dev made of maps. */
export class FakeKernelFiles implements KernelFiles {
  readonly texts = new Map<string, string>();
  readonly links = new Map<string, string>();
  readonly folders = new Map<string, readonly string[]>();
  readonly nodes = new Map<string, NodeInfo>();
  /** Devices whose exclusive open fails. */
  readonly claimed = new Set<string>();
  /** Devices that are kept open. */
  readonly held = new Set<string>();

  /** Devices that were flushed, in order. */
  readonly flushed: string[] = [];
  /** The result of a device's flush; a test may throw from it. */
  onFlush: (path: string, signal: AbortSignal) => boolean | Promise<boolean> = () => true;

  /** The files in memory, by their paths. */
  readonly memory = new Map<string, Uint8Array>();

  #memoryFiles = 0;

  /** Whether devices never answer. */
  hangs = false;
  /** The content of a device, zeros by default. */
  contents: (path: string, part: DevicePart) => Uint8Array = (_, { length }) => new Uint8Array(length);

  readText(path: string): string | undefined {
    return this.texts.get(path);
  }

  readLink(path: string): string | undefined {
    return this.links.get(path);
  }

  list(path: string): readonly string[] | undefined {
    return this.folders.get(path);
  }

  info(path: string): NodeInfo | undefined {
    return this.nodes.get(path);
  }

  canOpenExclusively(path: string, signal: AbortSignal): Promise<boolean> {
    return Promise.resolve(!signal.aborted && !this.claimed.has(path));
  }

  hold(path: string, signal: AbortSignal): Promise<HeldDevice | undefined> {
    const node = this.nodes.get(path);
    if (signal.aborted || node === undefined) return Promise.resolve(undefined);
    this.held.add(path);
    const release = () => Promise.resolve(void this.held.delete(path));
    return Promise.resolve({ deviceNumber: node.deviceNumber, path: `/proc/1/fd/${path}`, release });
  }

  async readDirect(
    path: string,
    parts: readonly DevicePart[],
    signal: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    if (this.hangs) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    if (signal.aborted) throw new VolumeError("unavailable", "The reading took too long");
    return parts.map((part) => this.contents(path, part));
  }

  async flush(path: string, signal: AbortSignal): Promise<boolean> {
    this.flushed.push(path);
    return await this.onFlush(path, signal);
  }

  memoryFile(content: Uint8Array, sizeBytes: number): MemoryFile {
    const path = `/proc/1/fd/memory-${this.#memoryFiles++}`;
    this.memory.set(path, content.slice());
    return {
      path,
      release: () => void this.memory.delete(path),
      read: (length) => {
        const bytes = new Uint8Array(sizeBytes);
        bytes.set(this.memory.get(path)!);
        return bytes.slice(0, length);
      },
    };
  }
}
