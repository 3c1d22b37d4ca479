import { type CommandIo, exitCodes, withPrintableOutput } from "./cli/io.ts";
import { commands, runCommand } from "./cli/commands.ts";
import { didYouMean, FlagError } from "./cli/flags.ts";
import { VolumeError } from "./volume/errors.ts";
import { isOfSystem, messageOf } from "./volume/error_messages.ts";

function usage(): string {
  const lines = Object.entries(commands).map(([name, command]) => `  ${name.padEnd(14)}${command.help}`);
  return `Usage: rds-csi COMMAND [flags]\n\n${
    lines.join("\n")
  }\n\n"rds-csi help COMMAND" explains a command.`;
}

async function main(args: string[]): Promise<number> {
  const io = withPrintableOutput(commandIo());
  const [name = "help", ...rest] = withCommand(args);
  if (name === "help") {
    io.out(usage());
    return exitCodes.ok;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) {
    const hint = didYouMean(name, Object.keys(commands));
    io.err(`rds-csi: there is no command ${JSON.stringify(name)}${hint}\n\n${usage()}`);
    return exitCodes.usage;
  }
  try {
    // Only this short flag is generally known.
    return await runCommand(command, rest.map((word) => word === "-h" ? "--help" : word), io);
  } catch (error) {
    return explain(name, error, io);
  }
}

/**
 * People look for `troubleshoot`, which is `describe`. Flags without a command belong to the legacy driver, which had no
 * commands: its manifests keep working with this image.
 */
function withCommand(args: string[]): string[] {
  const [first = "", ...rest] = args;
  if (first === "--version") return ["version", ...rest];
  if (first === "help" && rest[0] !== undefined) return withCommand([rest[0], "--help"]);
  if (first === "troubleshoot") return ["describe", ...rest];
  if (first === "--help" || first === "-h") return ["help"];
  return first.startsWith("-") ? ["serve", ...args] : args;
}

function explain(name: string, error: unknown, io: CommandIo): number {
  if (error instanceof FlagError) {
    for (const problem of error.problems) io.err(`rds-csi ${name}: ${problem}`);
    io.err(`"rds-csi help ${name}" explains every flag.`);
    return exitCodes.usage;
  }
  if (VolumeError.is(error)) {
    io.err(`rds-csi ${name}: ${error.message}`);
    return error.kind === "invalid" ? exitCodes.usage : exitCodes.failed;
  }
  if (error instanceof Error && isOfSystem(error)) io.err(`rds-csi ${name}: ${messageOf(error)}`);
  else {
    io.err(`rds-csi ${name}: this is a fault of rds-csi; please report it with these lines:`);
    io.err(error instanceof Error ? error.stack ?? error.message : String(error));
  }
  return exitCodes.failed;
}

function commandIo(): CommandIo {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new VolumeError("cancelled", `Stopped by ${signal}`)));
  }
  const rewrite = lineWriter();
  return {
    out: (line) => {
      rewrite?.("");
      printTo(Deno.stdout, line);
    },
    err: (line) => {
      rewrite?.("");
      printTo(Deno.stderr, line);
    },
    rewrite,
    env: readEnvironment,
    // `text()` would drop a mark of the byte order, which belongs to a passphrase.
    input: async () =>
      new TextDecoder("utf-8", { ignoreBOM: true }).decode(await new Response(Deno.stdin.readable).bytes()),
    ask: (question) => {
      rewrite?.("");
      writeTo(Deno.stderr, question);
      return readLine(stop.signal);
    },
    signal: stop.signal,
  };
}

/** Reads one line of the standard input; what is behind it stays for the next one. */
async function readLine(signal: AbortSignal): Promise<string> {
  const stopped = Promise.withResolvers<null>();
  const onAbort = () => stopped.resolve(null);
  signal.addEventListener("abort", onAbort, { once: true });
  const byte = new Uint8Array(1);
  let line = "";
  try {
    for (;;) {
      const count = await Promise.race([Deno.stdin.read(byte), stopped.promise]);
      if (count === null || byte[0] === 0x0a) return line;
      line += String.fromCharCode(byte[0]!);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Returns a function that replaces its own last line on standard error; undefined if that is no terminal. */
function lineWriter(): ((text: string) => void) | undefined {
  if (!Deno.stderr.isTerminal()) return undefined;
  let isShown = false;
  return (text) => {
    if (isShown || text !== "") writeTo(Deno.stderr, `\r\x1b[2K${text}`);
    isShown = text !== "";
  };
}

function printTo(stream: typeof Deno.stdout | typeof Deno.stderr, line: string): void {
  writeTo(stream, line + "\n");
}

function writeTo(stream: typeof Deno.stdout | typeof Deno.stderr, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let written = 0; written < bytes.length;) written += stream.writeSync(bytes.subarray(written));
}

/** A variable that the permissions exclude counts as not set. */
function readEnvironment(name: string): string | undefined {
  try {
    return Deno.env.get(name);
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return undefined;
    throw error;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
