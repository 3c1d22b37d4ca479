import { lines } from "../../../tools/lines.ts";

/** The result of a command in the guest. */
export interface CommandResult {
  /** Its exit status; 128 and more are signals, as in a shell. */
  readonly status: number;
  /** Without the last line feed, like a shell's substitution; stderr, too. */
  readonly stdout: string;
  readonly stderr: string;
}

/** How a command runs in the guest. */
export interface CommandOptions {
  /** Environment variables of the command. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its input; empty by default. */
  readonly input?: string | Uint8Array;
  /** Called with every line of its outputs as it arrives. */
  readonly onLine?: (line: string, output: "stdout" | "stderr") => void;
}

const guestEnded = "The guest ended while a command ran in it";
/** The errors of a connection whose other end is gone. */
const ended = /^(ConnectionReset|BrokenPipe|ConnectionAborted|UnexpectedEof)$/;

/** A command that runs in the guest. */
export class GuestCommand {
  /** The id of its process in the guest, which leads its own group; known as soon as it has started. */
  readonly pid: Promise<number>;
  /** Its result; fails when the guest ends first. */
  readonly end: Promise<CommandResult>;
  readonly #connection: Deno.TcpConn;

  /** Uses a connection to the guest's agent. */
  constructor(connection: Deno.TcpConn, script: string, options: CommandOptions) {
    this.#connection = connection;
    const started = Promise.withResolvers<number>();
    this.pid = started.promise;
    this.end = this.#run(scriptWith(script, options), options, started);
    // A caller that awaits one of them gets the failure; the other one must not end the process.
    this.pid.catch(() => {});
    this.end.catch(() => {});
  }

  /** Reads no more of its output, and leaves it running. */
  abandon(): void {
    closeQuietly(this.#connection);
  }

  async #run(
    script: string,
    options: CommandOptions,
    started: PromiseWithResolvers<number>,
  ): Promise<CommandResult> {
    try {
      await this.#send(script, options.input);
      return await this.#receive(options, started);
    } catch (error) {
      const problem = error instanceof Error && ended.test(error.name)
        ? new Error(guestEnded, { cause: error })
        : error;
      started.reject(problem);
      throw problem;
    } finally {
      closeQuietly(this.#connection);
    }
  }

  async #send(script: string, input: CommandOptions["input"] = ""): Promise<void> {
    const writer = this.#connection.writable.getWriter();
    const encoder = new TextEncoder();
    await writer.write(encoder.encode(`${inOneLine(script)}\n`));
    await writer.write(typeof input === "string" ? encoder.encode(input) : input);
    writer.releaseLock();
    await this.#connection.closeWrite();
  }

  async #receive(options: CommandOptions, started: PromiseWithResolvers<number>): Promise<CommandResult> {
    const printed: Record<"stdout" | "stderr", string[]> = { stdout: [], stderr: [] };
    for await (const line of lines(this.#connection.readable)) {
      const [kind, rest] = [line.slice(0, 2), line.slice(2)];
      if (kind === "3 ") started.resolve(Number(rest));
      else if (kind === "1 " || kind === "2 ") {
        const output = kind === "1 " ? "stdout" : "stderr";
        printed[output].push(rest);
        options.onLine?.(rest, output);
      } else if (kind === "0 ") {
        return { status: Number(rest), stdout: printed.stdout.join("\n"), stderr: printed.stderr.join("\n") };
      }
    }
    throw new Error(guestEnded);
  }
}

/** The script as the agent runs it. */
function scriptWith(script: string, { env = {} }: CommandOptions): string {
  const variables = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}\n`).join("");
  return `${variables}${script}\n`;
}

/** Quotes a word for a shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A text in one line for the shell's `printf %b`. */
function inOneLine(text: string): string {
  return text.replace(/[\\\n\r\0\t]/g, (one) => `\\0${one.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
