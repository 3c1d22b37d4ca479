import assert from "node:assert/strict";
import { join } from "node:path";
import { projectRoot } from "../../tests/support/parts.ts";
import { withPrintableOutput } from "./io.ts";

Deno.test("a command prints no control characters, whichever way it prints", async () => {
  const shown: string[] = [];
  const show = (text: string) => void shown.push(text);
  const io = withPrintableOutput({
    ...{ out: show, err: show, rewrite: show },
    ask(question) {
      show(question);
      return Promise.resolve("");
    },
    env: () => undefined,
    signal: new AbortController().signal,
  });
  io.out("pod \x1b]52;c;cm0=\x07 of\n a\r node");
  io.err("\u202egnp.exe");
  io.rewrite!("\x9b2J");
  await io.ask!("delete \x1b[1A?");
  assert.deepEqual(shown, [
    String.raw`pod \u001b]52;c;cm0=\u0007 of` + "\n" + String.raw` a\u000d node`,
    String.raw`\u202egnp.exe`,
    String.raw`\u009b2J`,
    String.raw`delete \u001b[1A?`,
  ]);
});

async function rdsCsi(...words: string[]): Promise<{ readonly out: string; readonly err: string }> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "-A", "--no-check", join(projectRoot, "src/main.ts"), ...words],
    stdin: "null",
  }).output();
  return { out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

Deno.test("rds-csi prints the errors of its command line without control characters", async () => {
  const { err } = await rdsCsi("\u202enoisrev");
  assert.match(err, /^rds-csi: there is no command "\\u202enoisrev"/);
});

Deno.test("troubleshoot is another name of describe", async () => {
  assert.match((await rdsCsi("help", "troubleshoot")).out, /^Usage: rds-csi describe /);
  assert.match((await rdsCsi("troubleshoot", "pvc/apps/data")).err, /^rds-csi describe: .*--kubeconfig/);
});
