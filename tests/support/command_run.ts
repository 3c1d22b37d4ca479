import type { CommandIo } from "../../src/cli/io.ts";
import { fakeCommandIo } from "../fakes/command_io.ts";
import { clusterId, routerPassword, type Stack } from "./stack.ts";

/** The result of a command. */
export interface CommandRun {
  readonly code: number;
  /** Its output, line by line. */
  readonly out: string;
  readonly err: string;
}

/** Runs a command that connects to the router like a controller, with a stack's router and its cluster. */
export async function runCommand(
  stack: Pick<Stack, "simulator">,
  command: (args: string[], io: CommandIo) => Promise<number>,
  args: readonly string[],
): Promise<CommandRun> {
  const passwordFile = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const { io, out, err } = fakeCommandIo();
  try {
    await Deno.writeTextFile(passwordFile, `${routerPassword}\n`);
    const { sshPort, hostKeyPublic } = stack.simulator;
    const code = await command([
      ...args,
      ...["--rds-address", "127.0.0.1", "--rds-port", String(sshPort)],
      ...["--rds-password-file", passwordFile, "--rds-host-key", hostKeyPublic],
      ...["--cluster-id", clusterId, "--unexport-grace", "0s"],
    ], io);
    return { code, out: out.join("\n"), err: err.join("\n") };
  } finally {
    await Deno.remove(passwordFile);
  }
}
