import assert from "node:assert/strict";
import { fakeCommandIo } from "../../tests/fakes/command_io.ts";
import { FlagError } from "./flags.ts";
import { VolumeError } from "../volume/errors.ts";
import { exitCodes, exitMeanings } from "./io.ts";
import { commands, runCommand } from "./commands.ts";

/** A command's process ends with it, so it leaves the C library loaded. */
const sanitizeResources = false;

async function run(name: string, args: string[], signal = new AbortController().signal) {
  const { io, out, err } = fakeCommandIo();
  const code = await runCommand(commands[name]!, args, { ...io, signal });
  return { code, out, err };
}

for (const [name, command] of Object.entries(commands)) {
  Deno.test(`${name} --help explains every flag, and does nothing else`, async () => {
    // With any other arguments.
    for (const args of [["--help"], ["--no-such-flag", "--help"]]) {
      const { code, out, err } = await run(name, args);
      assert.deepEqual([code, err], [exitCodes.ok, []]);
      const text = out.join("\n");
      assert.match(text, new RegExp(`^Usage: rds-csi ${name}\\b`));
      const [prose = ""] = text.split("\nFlags:");
      assert.deepEqual(
        prose.split("\n").filter((line) => line.length > 125),
        [],
        "a terminal is not as wide",
      );
      for (const name of ["ok", "failed", "usage"] as const) {
        const line = `  ${exitCodes[name]}  ${command.exits?.[name] ?? exitMeanings[name]}`;
        assert.ok(text.split("\n").includes(line), line);
      }
      assert.equal(/^ {2}3 {2}/m.test(text), command.exits?.unknown !== undefined);
      for (const [flag, { ignored, hidden }] of Object.entries(await command.flags())) {
        const isShown = ignored === undefined && hidden !== true;
        assert.equal(new RegExp(`^  --${flag}\\b`, "m").test(text), isShown, flag);
      }
    }
  });

  Deno.test(
    `${name} refuses a flag that it does not know, and does nothing`,
    { sanitizeResources },
    async () => {
      const words = [[], ["pvc-1"], ["bash"]];
      for (const before of words) {
        const isRefused = (error: unknown) => error instanceof FlagError || VolumeError.is(error, "invalid");
        await assert.rejects(run(name, [...before, "--no-such-flag"]), isRefused, before.join());
      }
    },
  );

  Deno.test(`${name} describes itself and its exit codes in a line each`, () => {
    assert.match(command.help, /^[a-z][^\n]{5,100}[^.\n]$/);
    for (const meaning of Object.values(command.exits ?? {})) assert.match(meaning, /^[A-Z].*\.$/);
  });
}

for (const name of ["doctor", "attach", "detach"]) {
  Deno.test(`${name} takes the flags of serve for a node, and none for a cluster`, async () => {
    const own = Object.keys(await commands[name]!.flags());
    const ofServe = new Set(Object.keys(await commands["serve"]!.flags()));
    const shared = own.filter((flag) => ofServe.has(flag));
    assert.ok(["node-id", "connector", "state-dir", "nqn-prefix"].every((flag) => shared.includes(flag)));
    const ofCluster = ["leader-election", "kubeconfig", "reconcile", "metrics-address"];
    assert.deepEqual(shared.filter((flag) => ofCluster.includes(flag)), []);
  });
}

/** How to make each command print JSON in an empty environment, and its exit codes then. */
const jsonRuns: Readonly<
  Record<string, (folder: string) => readonly [args: string[], codes: readonly number[]]>
> = {
  simulator: () => [["--ssh-port", "0", "--control-port", "0"], [exitCodes.ok]],
  demo: () => [["--data", "1", "--timing-scale", "0"], [exitCodes.ok]],
  doctor: (
    folder,
  ) => [["--rds-address", "127.0.0.1", "--rds-port", "1", "--state-dir", folder], [exitCodes.failed]],
  describe: (folder) => [
    ["--node-id", "a", "--state-dir", folder, "--connector", "loop", "--loop-backing", folder],
    [exitCodes.ok],
  ],
  version: () => [[], [exitCodes.ok]],
};

/** These need a subject, and are run in their own tests. */
const elsewhere = ["attach", "detach", "audit", "import", "adopt"];

Deno.test("every command that can print JSON is tested for it", async () => {
  const able: string[] = [];
  for (const [name, command] of Object.entries(commands)) {
    if (Object.hasOwn(await command.flags(), "json")) able.push(name);
  }
  assert.deepEqual(able.toSorted(), [...Object.keys(jsonRuns), ...elsewhere].toSorted());
});

for (const [name, command] of Object.entries(jsonRuns)) {
  Deno.test(
    `${name} --json prints one JSON document and nothing beside it`,
    { sanitizeResources },
    async () => {
      const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
      const stop = new AbortController();
      // It runs until it is stopped, which may be before it has begun.
      if (name === "simulator") stop.abort();
      try {
        const [args, codes] = command(folder);
        const { code, out } = await run(name, [...args, "--json"], stop.signal);
        assert.ok(codes.includes(code), `exit code ${code}`);
        assert.equal(typeof JSON.parse(out.join("\n")), "object");
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  );
}
