// Runs in a guest: `write PATH BLOCKS WRITER FIRST` writes without pause whatever happens; `verify PATH BLOCKS WRITER STOP`
// reads each block before it writes it again, until the file STOP is there; `scan PATH…` tells all stamps in each file, at
// any block, and `read PATH BLOCKS` those of a file past the page cache. Each line is JSON.

import { alignedBlock, CallError, DirectFile } from "./direct_file.ts";
import { blockBytes, readStamp, type Stamp, writeStamp } from "./stamp.ts";

/** How often progress is told, in milliseconds. */
const reportMs = 100;

function report(message: unknown): void {
  let bytes = new TextEncoder().encode(`${JSON.stringify(message)}\n`);
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

/** Never ends by itself: an error is told once, and then it opens the file again and goes on. */
function write(path: string, blocks: number, writer: string, first: number): void {
  const block = alignedBlock();
  let file: DirectFile | undefined;
  let [failure, reportedMs, sequence] = ["", 0, first];
  for (;;) {
    try {
      file ??= new DirectFile(path, false);
      const index = sequence % blocks;
      writeStamp(block, { writer, sequence, timeMs: Date.now(), index });
      file.write(block, index);
      if (failure !== "" || performance.now() - reportedMs > reportMs) {
        report({ acknowledged: sequence });
        [failure, reportedMs] = ["", performance.now()];
      }
      sequence++;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (failure !== error.message) report({ failed: error.message, acknowledged: sequence - 1 });
      failure = error.message;
      file?.close();
      file = undefined;
      pause(50);
    }
  }
}

/** Any failed call ends it, and any block that is not as it was acknowledged. */
function verify(path: string, blocks: number, writer: string, stop: string): void {
  const block = alignedBlock();
  const file = new DirectFile(path, true);
  const written = new Map<number, number>();
  const check = (index: number) => {
    file.read(block, index);
    const wanted = written.get(index);
    const found = readStamp(block);
    if (wanted === undefined) return;
    if (found?.isWhole && found.writer === writer && found.sequence === wanted && found.index === index) {
      return;
    }
    throw new Error(`block ${index} should have ${wanted} and has ${JSON.stringify(found ?? "no stamp")}`);
  };
  let [sequence, reportedMs, longestMs] = [0, 0, 0];
  while (sequence % 16 !== 0 || !isThere(stop)) {
    const startedMs = performance.now();
    const index = ++sequence * 17 % blocks;
    check(index);
    writeStamp(block, { writer, sequence, timeMs: Date.now(), index });
    file.write(block, index);
    written.set(index, sequence);
    longestMs = Math.max(longestMs, performance.now() - startedMs);
    if (performance.now() - reportedMs < reportMs) continue;
    report({ acknowledged: sequence, longestMs: Math.round(longestMs) });
    reportedMs = performance.now();
  }
  for (const index of written.keys()) check(index);
  report({ verified: written.size, acknowledged: sequence, longestMs: Math.round(longestMs) });
}

function scan(path: string): void {
  const chunk = new Uint8Array(256 * blockBytes);
  using file = Deno.openSync(path);
  const found: [number, string, number, boolean][] = [];
  let count: number | null;
  for (let at = 0; (count = file.readSync(chunk)) !== null; at += count) {
    if (count % blockBytes !== 0) throw new Error(`${path}: ${count} bytes at ${at}`);
    for (let from = 0; from < count; from += blockBytes) {
      const stamp = readStamp(chunk.subarray(from, from + blockBytes));
      if (stamp !== undefined) found.push(row((at + from) / blockBytes, stamp));
    }
  }
  report(found);
}

function read(path: string, blocks: number): void {
  const block = alignedBlock();
  const file = new DirectFile(path, false);
  const found: [number, string, number, boolean][] = [];
  for (let index = 0; index < blocks; index++) {
    file.read(block, index);
    const stamp = readStamp(block);
    if (stamp !== undefined) found.push(row(index, stamp));
  }
  file.close();
  report(found);
}

function row(at: number, { writer, sequence, isWhole }: Stamp): [number, string, number, boolean] {
  return [at, writer, sequence, isWhole];
}

function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

const [mode, path = "", blocks = "", writer = "", last = ""] = Deno.args;
if (mode === "write") write(path, Number(blocks), writer, Number(last));
else if (mode === "verify") verify(path, Number(blocks), writer, last);
else if (mode === "scan") Deno.args.slice(1).forEach(scan);
else if (mode === "read") read(path, Number(blocks));
else throw new Error(`There is no mode ${mode}`);
