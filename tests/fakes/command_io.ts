import { type CommandIo, withPrintableOutput } from "../../src/cli/io.ts";

/** A terminal without an environment, and the lines that a command has printed there. */
export function fakeCommandIo(): { readonly io: CommandIo; readonly out: string[]; readonly err: string[] } {
  const [out, err]: [string[], string[]] = [[], []];
  const io = withPrintableOutput({
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    env: () => undefined,
    signal: new AbortController().signal,
  });
  return { io, out, err };
}
