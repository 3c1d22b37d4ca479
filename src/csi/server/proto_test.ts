import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { VolumeError } from "../../volume/errors.ts";
import { defaultProtoPath, loadCsi } from "./proto.ts";

Deno.test("loadCsi() gives every service of the specification", () => {
  const csi = loadCsi();
  for (const service of ["Identity", "Controller", "Node"] as const) {
    assert.ok(Object.keys(csi[service].service).length > 0, service);
  }
  assert.equal(csi.Identity.service.Probe.path, "/csi.v1.Identity/Probe");
});

Deno.test("defaultProtoPath() finds the file from the sources, from a bundle and beside it", async () => {
  const scratch = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  // Deep enough that none of the places it looks in lies outside.
  const folder = `${scratch}/some/where/deep`;
  try {
    await Deno.mkdir(`${folder}/proto`, { recursive: true });
    await Deno.writeTextFile(`${folder}/proto/csi.proto`, "");
    for (const module of ["src/csi/server/proto.ts", "dist/bundle/main.js", "main.js"]) {
      assert.equal(
        defaultProtoPath(pathToFileURL(`${folder}/${module}`).href),
        `${folder}/proto/csi.proto`,
        module,
      );
    }
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
});

Deno.test("defaultProtoPath() throws internal naming where it looked", () => {
  assert.throws(() => defaultProtoPath("file:///nowhere/src/csi/server/proto.ts"), (error) => {
    assert.ok(VolumeError.is(error, "internal"));
    assert.match(error.message, /\/nowhere\/proto\/csi\.proto/);
    return true;
  });
});
