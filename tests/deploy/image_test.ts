import assert from "node:assert/strict";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { allTools, packageOf, systemToolPaths } from "../../src/host/tools.ts";
import { imagePackages } from "../support/image_root.ts";
import { readDeployFile } from "./objects.ts";

const dockerfile = readDeployFile("image/Dockerfile");

Deno.test("the image installs exactly the packages of the tools that the executable may run", () => {
  assert.deepEqual(imagePackages(), [...new Set(allTools.map(packageOf))].toSorted());
  const permitted = allTools.flatMap((tool) => systemToolPaths[tool]).toSorted();
  assert.deepEqual([...PERMISSIONS.node.run].toSorted(), permitted);
  const installs = dockerfile.match(/apt-get install.*/g);
  assert.deepEqual(installs, ["apt-get install --yes --no-install-recommends \\"], "only what the list says");
});

Deno.test("the image runs the executable of its architecture, as nobody, with labels of the OCI", () => {
  assert.match(dockerfile, /^COPY --chmod=0755 dist\/linux-\$\{TARGETARCH\}\/rds-csi \/usr\/bin\/rds-csi$/m);
  assert.match(dockerfile, /^ENTRYPOINT \["\/usr\/bin\/rds-csi"\]$/m);
  assert.match(dockerfile, /^USER 65532:65532$/m);
  for (const label of ["title", "description", "licenses", "base.name", "version", "revision"]) {
    assert.match(dockerfile, new RegExp(`org\\.opencontainers\\.image\\.${label}="`), label);
  }
  const [from, ...more] = dockerfile.match(/^FROM .*$/gm) ?? [];
  assert.deepEqual([from, more], ["FROM debian:bookworm-slim", []]);
});

Deno.test("the image is built of nothing but the executables, their terms and the list of packages", () => {
  assert.deepEqual(readDeployFile("image/Dockerfile.dockerignore").trimEnd().split("\n"), [
    "*",
    "!deploy/image/packages",
    "!dist/linux-amd64/rds-csi",
    "!dist/linux-arm64/rds-csi",
    "!dist/release/rds-csi-*.licenses.txt",
  ]);
});
