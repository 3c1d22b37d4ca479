import assert from "node:assert/strict";
import { fakeCommandIo } from "../../tests/fakes/command_io.ts";
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

/** What a shell prints that runs a script. */
async function shell(program: string, args: readonly string[], script: string): Promise<string> {
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  try {
    await Deno.writeTextFile(file, script);
    const command = new Deno.Command(program, { args: [...args, file], stdin: "null" });
    const { code, stdout, stderr } = await command.output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    return new TextDecoder().decode(stdout).trim();
  } finally {
    await Deno.remove(file);
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

function assertOffered(output: string, [typed, offered, not]: (typeof lines)[number]): void {
  const text = output.split("\n").map((line) => line.split("\t")[0]);
  for (const word of offered) assert.ok(text.includes(word), `${typed}: no ${word} in ${text.join(" ")}`);
  for (const word of not) assert.ok(!text.includes(word), `${typed}: ${word}`);
}

for (const line of lines) {
  const [typed] = line;
  Deno.test({
    name: `completion: bash completes "${typed}"`,
    ignore: !hasBash,
    fn: async () => {
      const text = typed.split(" ");
      const ask = `COMP_WORDS=(${text.map((word) => `"${word}"`).join(" ")}) COMP_CWORD=${text.length - 1}
        _rds_csi; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const script = `${await scriptFor("bash")}\n${ask}`;
      assertOffered(await shell("bash", ["--norc"], script), line);
    },
  });
  Deno.test({
    name: `completion: fish completes "${typed}"`,
    ignore: !hasFish,
    fn: async () => {
      const script = `${await scriptFor("fish")}\ncomplete -C '${typed}'`;
      assertOffered(await shell("fish", ["--no-config"], script), line);
    },
  });
}

Deno.test({
  name: "completion: bash completes a file where a flag takes any value",
  ignore: !hasBash,
  fn: async () => {
    const ask =
      `COMP_WORDS=(rds-csi doctor --rds-key /etc/passw) COMP_CWORD=3; _rds_csi; echo "\${COMPREPLY[@]}"`;
    const output = await shell("bash", ["--norc"], `${await scriptFor("bash")}\n${ask}`);
    assert.ok(output.split(" ").includes("/etc/passwd"), output);
  },
});

Deno.test({
  name: "completion: zsh knows whom to ask about rds-csi",
  ignore: !hasZsh,
  fn: async () => {
    const script = `autoload -U compinit && compinit -D -u\n${await scriptFor(
      "zsh",
    )}\necho "$_comps[rds-csi]"`;
    assert.match(await shell("zsh", ["-f"], script), /_rds_csi/);
  },
});

Deno.test("completion: every command and flag is known, and a shell that is not is refused", async () => {
  const script = await scriptFor("fish");
  for (const name of Object.keys(commands)) assert.match(script, new RegExp(`-a ${name} -d`));
  assert.match(script, /from serve' -l unexport-grace -r/);
  await assert.rejects(scriptFor("tcsh"), FlagError);
  await assert.rejects(scriptFor(), FlagError);
});
