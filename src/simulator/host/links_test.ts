import assert from "node:assert/strict";
import { makeLink } from "./links.ts";
import { libcPaths } from "../../host/libc.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

async function makeUnder(flags: string[], folder: string): Promise<{ code: number; link: string }> {
  const script = `import { makeLink } from ${JSON.stringify(new URL("./links.ts", import.meta.url).href)};
    makeLink("target", ${JSON.stringify(`${folder}/link`)});`;
  const args = ["run", "--quiet", "--no-prompt", "--no-lock", ...flags, "-"];
  const child = new Deno.Command(Deno.execPath(), { args, stdin: "piped", stderr: "null" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const { code } = await child.status;
  return { code, link: await Deno.readLink(`${folder}/link`).catch(() => "") };
}

Deno.test("makeLink() makes a link, also under permissions that name folders", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  makeLink("target", `${folder}/first`);
  assert.equal(await Deno.readLink(`${folder}/first`), "target");
  assert.throws(() => makeLink("other", `${folder}/first`));
  const scoped = [`--allow-read=${folder}`, `--allow-write=${folder}`];
  const libc = `--allow-ffi=${libcPaths[Deno.build.arch]}`;
  assert.deepEqual(await makeUnder([...scoped, libc], folder), { code: 0, link: "target" });
  await Deno.remove(`${folder}/link`);
  const { code, link } = await makeUnder(scoped, folder);
  assert.notEqual(code, 0);
  assert.equal(link, "");
});
