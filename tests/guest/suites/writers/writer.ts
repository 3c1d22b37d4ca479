import { type GuestCommand, quote } from "../../kit/agent.ts";
import type { Guest } from "../../kit/guest.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../../../tools/build.ts";
/** How many blocks a writer writes, one after the other, and then again. */
export const writtenBlocks = 128;

/** A block that a writer has stamped: where it is, by whom, with which sequence, and whether it is whole. */
export type FoundStamp = readonly [block: number, writer: string, sequence: number, isWhole: boolean];

/** What a writer says of itself. */
export interface WriterLine {
  readonly acknowledged?: number;
  readonly failed?: string;
  readonly verified?: number;
  readonly longestMs?: number;
}

/** What writes blocks in guests and reads them. */
export class Stamping {
  readonly #script: (...args: string[]) => string;

  private constructor(script: (...args: string[]) => string) {
    this.#script = script;
  }

  /** Puts it into guests. */
  static async install(folder: string, guests: readonly Guest[]): Promise<Stamping> {
    const program = await installProgram(new URL("writers_inside.ts", import.meta.url), folder, guests);
    return new Stamping((...args) => program.script(...args));
  }

  /** Writes without pause, whatever becomes of it, until it is killed. */
  async write(guest: Guest, path: string, writer: string, first: number): Promise<Writer> {
    return await Writer.start(
      guest,
      this.#script("write", path, `${writtenBlocks}`, writer, `${first}`),
      first,
    );
  }

  /** Reads every block before it writes it again, until the file `stop` is there; any failure ends it. */
  async verify(guest: Guest, path: string, writer: string, stop: string): Promise<Writer> {
    return await Writer.start(guest, this.#script("verify", path, `${writtenBlocks}`, writer, stop), 1);
  }

  /** All stamps in each of the files, wherever they are. */
  async scan(guest: Guest, paths: readonly string[]): Promise<readonly (readonly FoundStamp[])[]> {
    const output = await guest.sh(this.#script("scan", ...paths));
    return output.split("\n").map((line) => JSON.parse(line));
  }

  /** The stamps of the blocks that a writer writes, as they are read past the page cache. */
  async read(guest: Guest, path: string): Promise<readonly FoundStamp[]> {
    return JSON.parse(await guest.sh(this.#script("read", path, `${writtenBlocks}`)));
  }
}

/** A writer that runs in a guest. */
export class Writer {
  /** The last sequence whose write was acknowledged, as far as it has told. */
  acknowledged: number;
  /** What it told, with the host's time in milliseconds. */
  readonly reported: { readonly atMs: number; readonly line: WriterLine }[] = [];
  readonly #guest: Guest;
  readonly #command: GuestCommand;
  #ended = false;

  private constructor(guest: Guest, command: GuestCommand, first: number) {
    this.#guest = guest;
    this.#command = command;
    this.acknowledged = first - 1;
    const end = () => this.#ended = true;
    command.end.then(end, end);
  }

  static async start(guest: Guest, script: string, first: number): Promise<Writer> {
    let heard: (text: string) => void = () => {};
    const early: string[] = [];
    const onLine = (text: string, output: string) => {
      if (output === "stdout") heard(text);
    };
    heard = (text) => early.push(text);
    const writer = new Writer(guest, await guest.start(script, { onLine }), first);
    heard = (text) => writer.#hear(text);
    early.forEach(heard);
    return writer;
  }

  /** Waits until it has told something for which `isSo` holds, of what it tells from now on. */
  async reports(isSo: (line: WriterLine) => boolean, limitSeconds: number): Promise<WriterLine> {
    const from = this.reported.length;
    const untilMs = performance.now() + limitSeconds * 1000;
    for (;;) {
      const found = this.reported.slice(from).find(({ line }) => isSo(line));
      if (found !== undefined) return found.line;
      if (this.#ended) {
        const { stderr } = await this.#command.end;
        throw new Error(`The writer in ${this.#guest.name} has ended: ${stderr}`);
      }
      if (performance.now() > untilMs) {
        const last = JSON.stringify(this.reported.at(-1)?.line);
        throw new Error(
          `The writer in ${this.#guest.name} does not get there within ${limitSeconds} s: ${last}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Waits until it writes. */
  async progresses(limitSeconds = 60): Promise<void> {
    await this.reports(
      ({ acknowledged, failed }) => acknowledged !== undefined && failed === undefined,
      limitSeconds,
    );
  }

  /** Kills it, and waits until it is gone: a write that hangs keeps it until it fails. */
  async kill(): Promise<void> {
    await this.beginKill();
    await this.ended(60);
  }

  /** Kills it without waiting for its end. */
  async beginKill(): Promise<void> {
    await this.#guest.run(`kill -KILL -${await this.#command.pid}`, { limitSeconds: 60 });
  }

  /** Waits until it is gone. */
  async ended(limitSeconds: number): Promise<void> {
    const limit = Promise.withResolvers<never>();
    const timer = setTimeout(
      () =>
        limit.reject(
          new Error(`The writer in ${this.#guest.name} still hangs ${limitSeconds} s after SIGKILL`),
        ),
      limitSeconds * 1000,
    );
    try {
      await Promise.race([this.#command.end, limit.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits until it ends by itself; throws unless all was well. */
  async end(): Promise<void> {
    const { status, stderr } = await this.#command.end;
    if (status !== 0) throw new Error(`The writer in ${this.#guest.name} ended with ${status}: ${stderr}`);
  }

  #hear(text: string): void {
    const line = JSON.parse(text) as WriterLine;
    this.reported.push({ atMs: performance.now(), line });
    this.acknowledged = line.acknowledged ?? this.acknowledged;
  }
}

/** A program of the tests' own that guests run. */
interface GuestProgram {
  /** The script that becomes it. */
  script(...args: readonly string[]): string;
}

/**
 * Puts a TypeScript file, bundled, into guests, where their Deno runs it with all permissions.
 *
 * @param file URL of the file, as `new URL("x_inside.ts", import.meta.url)`
 * @param folder of the host, for the bundle
 */
async function installProgram(
  file: URL,
  folder: string,
  guests: readonly Guest[],
): Promise<GuestProgram> {
  const name = file.pathname.replace(/.*\//, "").replace(/\.ts$/, "");
  await bundle(fileURLToPath(file), join(folder, name));
  const text = await Deno.readTextFile(join(folder, name, "main.js"));
  await Promise.all(guests.map((guest) => guest.write(`/root/${name}.js`, text)));
  const variables = "DENO_DIR=/tmp/deno DENO_NO_UPDATE_CHECK=1 NO_COLOR=1";
  const wording = `/opt/tools/deno run --allow-all --no-config --no-lock --no-check /root/${name}.js`;
  return { script: (...args) => `${variables} exec ${[wording, ...args.map(quote)].join(" ")}` };
}
