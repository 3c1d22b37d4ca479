/** Runs a shell script in the guest and answers what it printed; a failure throws. */
export async function sh(script: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("/usr/bin/sh", {
    args: ["-c", script],
    stdin: "null",
  })
    .output();
  const decoder = new TextDecoder();
  if (code === 0) return decoder.decode(stdout).trim();
  throw new Error(`${script}: exit ${code}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}
