import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { type CommandOptions, type CommandResult, GuestCommand } from "./agent.ts";
import { findProgram } from "../../../tools/host_command.ts";

const agent = fileURLToPath(new URL("../image/agent", import.meta.url));
const lacking = ["socat", "busybox"].filter((name) => findProgram(name) === undefined);
if (lacking.length > 0) {
  Deno.stderr.writeSync(new TextEncoder().encode(`ignored: ${lacking.join(", ")} not installed\n`));
}

/** Serves one connection with the guest's own agent, here on the host, and runs a command through it. */
async function runByAgent(script: string, options: CommandOptions = {}): Promise<CommandResult> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const here = `${folder}/agent`;
  const text = await Deno.readTextFile(agent);
  await Deno.writeTextFile(here, text.replace("/run/agent", folder), { mode: 0o755 });
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const server = new Deno.Command("socat", {
    args: ["-t", "60", `TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr`, `EXEC:${here}`],
    stdin: "null",
  }).spawn();
  try {
    return await new GuestCommand(await connect(port), script, options).end;
  } finally {
    await server.status;
    await Deno.remove(folder, { recursive: true });
  }
}

async function connect(port: number): Promise<Deno.TcpConn> {
  for (const until = performance.now() + 10_000;;) {
    try {
      return await Deno.connect({ port });
    } catch (error) {
      if (!(error instanceof Deno.errors.ConnectionRefused) || performance.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const cases: readonly [what: string, script: string, options: CommandOptions, result: CommandResult][] = [
  ["its status", "exit 7", {}, { status: 7, stdout: "", stderr: "" }],
  ["both outputs apart", "echo a; echo b >&2; echo c", {}, { status: 0, stdout: "a\nc", stderr: "b" }],
  ["an output without an end of line", "printf a", {}, { status: 0, stdout: "a", stderr: "" }],
  ["lines that look like the agent's own", "echo '0 9'; echo; echo '3 1'", {}, {
    status: 0,
    stdout: "0 9\n\n3 1",
    stderr: "",
  }],
  ["what it was given to read", "cat", { input: "x\ny" }, { status: 0, stdout: "x\ny", stderr: "" }],
  ["special characters of its script", "echo 'a\\tb' \"$v\"\t'ä'", { env: { v: "'q' $x\n\\" } }, {
    status: 0,
    stdout: "a\tb 'q' $x\n\\ ä",
    stderr: "",
  }],
];

for (const [what, script, options, result] of cases) {
  Deno.test({
    name: `GuestCommand returns ${what}`,
    ignore: lacking.length > 0,
    fn: async () => assert.deepEqual(await runByAgent(script, options), result),
  });
}
