import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { findProgram } from "../../tools/host_command.ts";
import { freePort, projectRoot } from "../support/parts.ts";
import { ignoredBecause, withScratch } from "./archive.ts";
import { insecureRegistries } from "./builder.ts";

const ignore = findProgram("skopeo") === undefined;
if (ignore) ignoredBecause("the test that asks a registry for digests needs skopeo");

const manifest = JSON.stringify({
  schemaVersion: 2,
  mediaType: "application/vnd.oci.image.index.v1+json",
  manifests: [],
});
const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;

/** A registry with one image, which has one tag. */
function answer(request: Request): Response {
  const { pathname } = new URL(request.url);
  if (pathname === "/v2/") return Response.json({});
  if (pathname !== "/v2/storage/tool/manifests/v1.0.0") return Response.json({ errors: [] }, { status: 404 });
  return new Response(manifest, { headers: { "content-type": "application/vnd.oci.image.index.v1+json" } });
}

Deno.test(
  { name: "image/digests pins what a registry has, and names what it has not", ignore },
  () =>
    withScratch(async (folder) => {
      const registry = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
      try {
        const site = `127.0.0.1:${registry.addr.port}`;
        await insecureRegistries(folder, site);
        const values = join(folder, "values.yaml");
        const text = (pin: string) =>
          `# The tools.\ntool:\n  image: ${site}/storage/tool:v1.0.0${pin}\nother:\n  image: ${site}/storage/other:v1\n`;
        await Deno.writeTextFile(values, text(""));
        const { code, stdout, stderr } = await pin(values, folder);
        assert.equal(await Deno.readTextFile(values), text(`@${digest}`));
        assert.equal(code, 1);
        assert.equal(stdout, `${site}/storage/tool:v1.0.0 ${digest}\n${site}/storage/other:v1 UNVERIFIED\n`);
        assert.match(stderr, /^127\.0\.0\.1:\d+\/storage\/other:v1: skopeo inspect .* ended with 1: /);
        await Deno.writeTextFile(values, `tool:\n  image: ${site}/storage/tool:v1.0.0\n`);
        assert.equal((await pin(values, folder)).code, 0);
      } finally {
        await registry.shutdown();
      }
    }),
);

Deno.test(
  { name: "image/digests changes nothing where no registry can be reached", ignore },
  () =>
    withScratch(async (folder) => {
      const values = join(folder, "values.yaml");
      const text = `tool:\n  image: 127.0.0.1:${freePort()}/storage/tool:v1.0.0\n`;
      await Deno.writeTextFile(values, text);
      assert.equal((await pin(values, folder)).code, 1);
      assert.equal(await Deno.readTextFile(values), text);
    }),
);

async function pin(values: string, home: string) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "tools/image/digests.ts", values],
    cwd: projectRoot,
    env: { HOME: home },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
