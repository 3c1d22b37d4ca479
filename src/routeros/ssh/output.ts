import { Buffer } from "node:buffer";

/** The most output that the channels of one router may have together, in bytes. */
const maxBytes = 64 * 2 ** 20;
/** The most output of one channel: as text it is on the heap, and takes twice as much where it is not Latin. */
const maxChannelBytes = 24 * 2 ** 20;

/**
 * The outputs of all running channels of a connection. Whoever writes to the router chooses how long an answer is: the
 * router itself, and whoever names files on it. So there is a limit for each, and for all together, where the longest
 * ends for the others.
 */
export class Outputs {
  readonly #running = new Set<Output>();
  readonly #maxBytes: number;
  readonly #maxChannelBytes: number;

  constructor(limits = { maxBytes, maxChannelBytes }) {
    this.#maxBytes = limits.maxBytes;
    this.#maxChannelBytes = limits.maxChannelBytes;
  }

  /** Begins one. @param onOverlong called once, when it becomes too long and is dropped */
  open(onOverlong: () => void): Output {
    const output: Output = new Output(
      () => this.#limit(output),
      () => this.#running.delete(output),
      onOverlong,
    );
    this.#running.add(output);
    return output;
  }

  #limit(grown: Output): void {
    if (grown.bytes > this.#maxChannelBytes) return grown.drop();
    const all = [...this.#running];
    if (all.reduce((sum, { bytes }) => sum + bytes, 0) <= this.#maxBytes) return;
    all.reduce((a, b) => b.bytes > a.bytes ? b : a).drop();
  }
}

/**
 * The output of a channel, in arrival order, outside the heap until it is complete.
 *
 * A byte that is no UTF-8 becomes U+FFFD: it is visible, and is refused where it would have to be sent back.
 */
export class Output {
  readonly #onGrowth: () => void;
  readonly #onEnd: () => void;
  readonly #onOverlong: () => void;
  readonly #streams = { printed: new Bytes(), errors: new Bytes() };
  #isDropped = false;

  constructor(onGrowth: () => void, onEnd: () => void, onOverlong: () => void) {
    this.#onGrowth = onGrowth;
    this.#onEnd = onEnd;
    this.#onOverlong = onOverlong;
  }

  /** How long it is so far. */
  get bytes(): number {
    return this.#streams.printed.length + this.#streams.errors.length;
  }

  /** Whether it became too long: nothing of it is left. */
  get isOverlong(): boolean {
    return this.#isDropped;
  }

  add(stream: "printed" | "errors", chunk: Uint8Array): void {
    if (this.#isDropped) return;
    this.#streams[stream].add(chunk);
    this.#onGrowth();
  }

  drop(): void {
    this.#isDropped = true;
    for (const stream of Object.values(this.#streams)) stream.clear();
    this.#onEnd();
    this.#onOverlong();
  }

  /** All of it, which is given up here. */
  end(): { readonly printed: string; readonly errors: string } {
    this.#onEnd();
    return { printed: this.#streams.printed.take(), errors: this.#streams.errors.take() };
  }
}

/** Bytes in one piece: a million pieces of a byte each would take a hundred times as much. */
class Bytes {
  length = 0;
  #buffer = new Uint8Array();

  add(chunk: Uint8Array): void {
    const length = this.length + chunk.length;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(4096, length, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.length));
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.length);
    this.length = length;
  }

  clear(): void {
    this.length = 0;
    this.#buffer = new Uint8Array();
  }

  take(): string {
    const text = Buffer.from(this.#buffer.buffer, 0, this.length).toString("utf8");
    this.clear();
    return text;
  }
}
