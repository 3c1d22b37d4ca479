import assert from "node:assert/strict";

/** Runs a shell line and returns what it printed; fails when it exits with another code than 0. */
export async function runShell(line: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("sh", { args: ["-ec", line], stdin: "null" })
    .output();
  const decoder = new TextDecoder();
  assert.equal(code, 0, `${line}: ${decoder.decode(stderr)}`);
  return decoder.decode(stdout);
}
