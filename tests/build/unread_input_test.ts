import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

// What an ended child's input answers differs between runtimes, so this is asked of the one that the executable has.
Deno.test("a tool that ends without reading its input does not end the executable's runtime", async () => {
  const script = fileURLToPath(new URL("unread_input.ts", import.meta.url));
  const args = [
    "run",
    "--allow-run=/bin/true,/bin/sleep",
    "--allow-read",
    "--allow-env",
    "--no-check",
    script,
  ];
  const compiler = Deno.env.get("DENO_COMPILE") || Deno.execPath();
  const { code, stderr } = await new Deno.Command(compiler, { args, stdin: "null" }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
});
