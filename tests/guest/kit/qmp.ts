import { lines } from "../../../tools/lines.ts";

/** Longest that an emulator may take to answer, in milliseconds. */
const limitMs = 30_000;

interface Reply {
  readonly return?: unknown;
  readonly error?: { readonly desc: string };
}

/** The emulator's control connection (QMP): one command at a time, answered in order. */
export class Qmp {
  readonly #connection: Deno.UnixConn;
  readonly #lines: AsyncGenerator<string>;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(connection: Deno.UnixConn) {
    this.#connection = connection;
    this.#lines = lines(connection.readable);
  }

  /** Connects to the emulator's socket, which has to be there. */
  static async connect(path: string): Promise<Qmp> {
    const qmp = new Qmp(await Deno.connect({ transport: "unix", path }));
    await qmp.#lines.next();
    await qmp.execute("qmp_capabilities");
    return qmp;
  }

  /** Runs one command; throws when the emulator refuses it or does not answer. */
  execute(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const next = this.#last.then(() => this.#exchange(command, args));
    this.#last = next.catch(() => {});
    return next;
  }

  close(): void {
    try {
      this.#connection.close();
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  async #exchange(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const request = JSON.stringify({ execute: command, ...(args === undefined ? {} : { arguments: args }) });
    await this.#connection.write(new TextEncoder().encode(`${request}\n`));
    let limit: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      limit = setTimeout(
        () => reject(new Error(`The emulator does not answer: command=${command}`)),
        limitMs,
      );
    });
    try {
      return await Promise.race([late, this.#reply(command)]);
    } finally {
      clearTimeout(limit);
    }
  }

  /** Events come between answers. */
  async #reply(command: string): Promise<unknown> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`The emulator ended: command=${command}`);
      const reply = JSON.parse(value) as Reply;
      if (reply.error !== undefined) {
        throw new Error(`The emulator refuses: command=${command} ${reply.error.desc}`);
      }
      if ("return" in reply) return reply.return;
    }
  }
}
