import { fileURLToPath } from "node:url";
import { isFile } from "../../tools/host_command.ts";

/** The executable that `make build` makes. */
export const BINARY = fileURLToPath(new URL("../../dist/rds-csi", import.meta.url));

/** The longest time that a test lets the executable run. */
const LIMIT_MS = 60_000;

/** Whether it is built. */
export const isBuilt = isFile(BINARY);

if (!isBuilt) {
  Deno.stderr.writeSync(new TextEncoder().encode("ignored: dist/rds-csi is not built; make build\n"));
}

/** The result of a run of the executable. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the executable with only `env` as its environment. */
export async function runBinary(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const { code, stdout, stderr } = await new Deno.Command(BINARY, {
    args: [...args],
    clearEnv: true,
    env,
    cwd: "/",
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
