import assert from "node:assert/strict";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { allTools, packageOf, systemToolPaths } from "../../src/host/tools.ts";
import { basename } from "node:path";
import { containerConfig, labelsOf } from "../../tools/image/oci.ts";
import { imagesIn } from "../../tools/image/chart_images.ts";
import { projectRoot } from "../support/parts.ts";
import { architectures, readPins } from "../../tools/image/root.ts";
import { readDeployFile } from "./objects.ts";

const dockerfile = readDeployFile("image/Dockerfile");

Deno.test("the image has the packages of exactly the tools that the executable may run, and pins them", () => {
  const packages = readDeployFile("image/packages").trimEnd().split("\n");
  assert.deepEqual(packages, [...new Set(allTools.map(packageOf))].toSorted());
  const permitted = allTools.flatMap((tool) => systemToolPaths[tool]).toSorted();
  assert.deepEqual([...PERMISSIONS.node.run].toSorted(), permitted);
  const versions = architectures.map((architecture) =>
    readPins().filter((pin) => pin.architecture === architecture).map(({ digest, path }) => {
      assert.match(digest, /^[0-9a-f]{64}$/);
      const [name, version, suffix] = basename(path).split("_");
      assert.ok(suffix === `${architecture}.deb` || suffix === "all.deb", path);
      return `${name} ${version}`;
    })
  );
  assert.deepEqual(versions[0], versions[1], "every platform has the same");
  const names = new Set(versions[0]!.map((pin) => pin.split(" ")[0]));
  for (const name of packages) assert.ok(names.has(name), `${name} is not pinned: make image/pins`);
});

Deno.test("the Dockerfile and make image set the same image configuration", () => {
  assert.match(dockerfile, /^COPY --chmod=0755 dist\/linux-\$\{TARGETARCH\}\/rds-csi \/usr\/bin\/rds-csi$/m);
  assert.match(
    dockerfile,
    /^RUN \/image\/make-root.sh "\$TARGETARCH" \/image\/packages.lock \/image\/root$/m,
  );
  const instruction = (name: string) => new RegExp(`^${name} (.*)$`, "m").exec(dockerfile)?.[1] ?? "";
  assert.equal(instruction("USER"), containerConfig.User);
  assert.deepEqual(JSON.parse(instruction("ENTRYPOINT")), containerConfig.Entrypoint);
  assert.deepEqual(JSON.parse(instruction("CMD")), containerConfig.Cmd);
  const labels = [...dockerfile.matchAll(/(org\.opencontainers\.[\w.]+)="(.*)"/g)].map((
    [, name, text],
  ) => [name, text]);
  const expected = labelsOf({ version: "${VERSION}", commit: "${REVISION}" });
  assert.deepEqual(Object.fromEntries(labels), expected);
  assert.deepEqual(dockerfile.match(/^FROM .*$/gm), [
    "FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS root",
    "FROM scratch",
  ]);
});

Deno.test("the registries of the chart's images are named in the chart and in workflows alone", async () => {
  const names = imagesIn(readDeployFile("chart/values.yaml")).map(({ name }) => name.split("/"));
  const hosts = new Set(names.filter((parts) => parts.length > 2).map(([host]) => host!));
  assert.ok(hosts.size > 0);
  // What is rendered from the chart has them as well.
  const elsewhere = [
    ".",
    ...["deploy/chart", "deploy/manifests", ".github/workflows"].map((path) => `:!${path}`),
  ];
  for (const host of hosts) {
    const args = ["grep", "-l", "-F", "-e", host, "-e", host.replaceAll(".", "\\."), "--", ...elsewhere];
    const { code, stdout, stderr } = await new Deno.Command("git", { args, cwd: projectRoot }).output();
    const decoder = new TextDecoder();
    assert.deepEqual(
      [code, decoder.decode(stdout)],
      [1, ""],
      `${host} is named elsewhere ${decoder.decode(stderr)}`,
    );
  }
});

Deno.test("the image is built only from the executables, their documents, and the pinned packages", () => {
  assert.deepEqual(readDeployFile("image/Dockerfile.dockerignore").trimEnd().split("\n"), [
    "*",
    "!deploy/image/make-root.sh",
    "!deploy/image/packages.lock",
    "!dist/linux-amd64/rds-csi",
    "!dist/linux-arm64/rds-csi",
    "!dist/release/rds-csi-*.image.cdx.json",
    "!dist/release/rds-csi-*.licenses.txt",
  ]);
});
