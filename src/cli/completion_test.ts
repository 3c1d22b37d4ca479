import assert from "node:assert/strict";
import { join } from "node:path";
import { fakeCommandIo } from "../../tests/fakes/command_io.ts";
import { projectRoot } from "../../tests/support/parts.ts";
import { FlagError } from "./flags.ts";
import { completionCommand } from "./completion.ts";
import { exitCodes } from "./io.ts";
import { commands } from "./commands.ts";

async function scriptFor(...args: string[]): Promise<string> {
  const { io, out, err } = fakeCommandIo();
  assert.equal(await completionCommand(args, io, commands), exitCodes.ok);
  assert.deepEqual(err, []);
  return out.join("\n");
}

/** The output of a shell that runs a script in which rds-csi is this source. */
async function shell(program: string, args: readonly string[], script: string): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    const [file, own] = [join(folder, "script"), join(folder, "rds-csi")];
    await Deno.writeTextFile(file, script);
    const main = join(projectRoot, "src/main.ts");
    await Deno.writeTextFile(own, `#!/bin/sh\nexec "${Deno.execPath()}" run --quiet -A "${main}" "$@"\n`);
    await Deno.chmod(own, 0o755);
    const env = { PATH: `${folder}:/usr/bin:/bin` };
    const { code, stdout, stderr } = await new Deno.Command(program, {
      args: [...args, file],
      env,
      stdin: "null",
    })
      .output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout).trim();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function isHere(program: string): boolean {
  try {
    return Deno.statSync(`/usr/bin/${program}`).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

const [hasBash, hasZsh, hasFish] = ["bash", "zsh", "fish"].map(isHere);
for (const [name, has] of [["bash", hasBash], ["zsh", hasZsh], ["fish", hasFish]] as const) {
  const note = `ignored: completion in ${name}, which is not at /usr/bin/${name}\n`;
  if (!has) Deno.stderr.writeSync(new TextEncoder().encode(note));
}

const lines: readonly (readonly [typed: string, offered: readonly string[], not: readonly string[]])[] = [
  ["rds-csi ", ["serve", "doctor", "allow-format", "version"], ["--json"]],
  ["rds-csi de", ["demo", "describe", "detach"], ["serve"]],
  ["rds-csi doctor --rds-a", ["--rds-address"], ["--rds-port"]],
  ["rds-csi demo --filesystem ", ["ext4", "xfs"], ["--data"]],
  ["rds-csi completion ", ["bash", "zsh", "fish"], ["serve"]],
  ["rds-csi version --", ["--json", "--help"], ["--rds-address"]],
];

for (const [typed, offered, not] of lines) {
  const inShells = [
    ["bash", hasBash, "--norc", bashAsks(typed)],
    ["fish", hasFish, "--no-config", `complete -C '${typed}'`],
  ] as const;
  for (const [name, has, flag, ask] of inShells) {
    Deno.test({
      name: `completion: ${name} completes "${typed}"`,
      ignore: !has,
      fn: async () => {
        const output = await shell(name, [flag], `${await scriptFor(name)}\n${ask}`);
        const text = output.split("\n").map((line) => line.split("\t")[0]);
        for (const word of offered) assert.ok(text.includes(word), `no ${word} in ${text.join(" ")}`);
        for (const word of not) assert.ok(!text.includes(word), word);
      },
    });
  }
}

function bashAsks(typed: string): string {
  const text = typed.split(" ");
  return `COMP_WORDS=(${text.map((word) => `"${word}"`).join(" ")}) COMP_CWORD=${text.length - 1}
    _rds_csi; printf '%s\\n' "\${COMPREPLY[@]}"`;
}

Deno.test({
  name: "completion: where a flag takes any value, nothing is offered, so that bash completes a file",
  ignore: !hasBash,
  fn: async () => {
    const script = `${await scriptFor("bash")}\n${
      bashAsks("rds-csi doctor --rds-key /etc/passw")
    }; complete -p rds-csi`;
    assert.equal(await shell("bash", ["--norc"], script), "complete -o default -F _rds_csi rds-csi");
  },
});

Deno.test({
  name: "completion: zsh asks rds-csi for completions",
  ignore: !hasZsh,
  fn: async () => {
    const start = "autoload -U compinit && compinit -D -u";
    const script = `${start}\n${await scriptFor("zsh")}\necho "$_comps[rds-csi]"`;
    assert.match(await shell("zsh", ["-f"], script), /_rds_csi/);
  },
});

Deno.test("completion: every command and flag is offered, and an unknown shell is refused", async () => {
  assert.deepEqual((await scriptFor("words", "rds-csi ")).split("\n"), Object.keys(commands));
  assert.ok((await scriptFor("words", "rds-csi serve --")).split("\n").includes("--unexport-grace"));
  assert.equal(await scriptFor("words", "rds-csi nothing "), "--help");
  for (const wrong of [["tcsh"], [], ["bash", "zsh"], ["words"]]) {
    await assert.rejects(scriptFor(...wrong), FlagError);
  }
});
