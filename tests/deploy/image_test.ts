import assert from "node:assert/strict";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { allTools, packageOf, systemToolPaths } from "../../src/host/tools.ts";
import { basename } from "node:path";
import { containerConfig, labelsOf } from "../../tools/image/oci.ts";
import { imagesIn } from "../../tools/image/chart_images.ts";
import { version } from "../../src/cli/build_version.ts";
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
  const instruction = (name: string) => new RegExp(`^${name} (.*)$`, "m").exec(dockerfile)?.[1] ?? "";
  assert.equal(instruction("USER"), containerConfig.User);
  assert.deepEqual(JSON.parse(instruction("ENTRYPOINT")), containerConfig.Entrypoint);
  assert.deepEqual(JSON.parse(instruction("CMD")), containerConfig.Cmd);
  const labels = [...dockerfile.matchAll(/(org\.opencontainers\.[\w.]+)="(.*)"/g)].map((
    [, name, text],
  ) => [name, text]);
  assert.deepEqual(Object.fromEntries(labels), labelsOf({ version, commit: "${REVISION}" }));
});

Deno.test("the image takes nothing of its base, and of the sources only what was made of them", () => {
  const stages = dockerfile.split(/^(?=FROM )/m).slice(1);
  assert.deepEqual(stages.map((stage) => stage.split("\n")[0]), [
    "FROM --platform=$BUILDPLATFORM $BASE AS root",
    "FROM --platform=$BUILDPLATFORM $BASE AS executable",
    "FROM scratch",
  ]);
  assert.deepEqual(stages.at(-1)?.match(/^(COPY|ADD|RUN) .*$/gm), [
    "COPY --from=root /image/root /",
    "COPY --from=executable /image/files /",
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
