import assert from "node:assert/strict";
import { fakeCommandIo } from "../../tests/fakes/command_io.ts";
import { FlagError } from "./flags.ts";
import { version } from "./build_version.ts";
import { versionCommand } from "./version.ts";

async function printed(...args: string[]): Promise<string> {
  const { io, out, err } = fakeCommandIo();
  assert.equal(await versionCommand(args, io), 0);
  assert.deepEqual(err, []);
  return out.join("\n");
}

Deno.test("version: prints what it is and how it was built", async () => {
  assert.ok((await printed()).startsWith(`rds-csi ${version} (commit unknown, deno ${Deno.version.deno}, `));
  assert.deepEqual(JSON.parse(await printed("--json")), {
    version,
    commit: "unknown",
    deno: Deno.version.deno,
    target: Deno.build.target,
  });
  await assert.rejects(async () => await printed("--jsno"), FlagError);
});
