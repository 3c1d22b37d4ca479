import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { allTools, systemToolPaths } from "../../src/host/tools.ts";
import { version } from "../../src/cli/build_version.ts";
import { architectures, makeImageRoot, readPins } from "../../tools/image/root.ts";
import { findProgram, hostOutput, isFile } from "../../tools/host_command.ts";
import { projectRoot } from "../support/parts.ts";
import {
  blobPathOf,
  digestOf,
  filesBelow,
  ignoredBecause,
  isImageMade,
  unpackArchive,
  withScratch,
} from "./archive.ts";
import { archivePath, releaseFolder } from "./release_files.ts";

const needed = ["dpkg-deb", "gunzip", "readelf"].filter((name) => findProgram(name) === undefined);
if (Deno.uid() !== 0) needed.push("root");
if (needed.length > 0) ignoredBecause(`the tests of the image's archive need ${needed.join(", ")}`);
const ignore = !isImageMade || needed.length > 0;

for (const architecture of architectures) {
  Deno.test(
    { name: `the ${architecture} archive names nothing that is not in it as it says`, ignore },
    () =>
      withScratch(async (folder) => {
        const { index, manifest, config } = await unpackArchive(archivePath(architecture), folder);
        assert.equal(index.manifests.length, 1);
        for (const { digest, size, ...rest } of [...index.manifests, manifest.config, ...manifest.layers]) {
          const file = join(folder, blobPathOf({ digest, size, ...rest }));
          assert.equal(`sha256:${digestOf(file)}`, digest);
          assert.equal((await Deno.stat(file)).size, size);
        }
        for (const [at, layer] of manifest.layers.entries()) {
          const compressed = join(folder, blobPathOf(layer));
          await hostOutput("sh", ["-c", 'gunzip <"$1" >"$2"', "sh", compressed, join(folder, "layer")]);
          assert.equal(`sha256:${digestOf(join(folder, "layer"))}`, config.rootfs.diff_ids[at]);
        }
        assert.deepEqual([config.architecture, config.os], [architecture, "linux"]);
        const docker = JSON.parse(await Deno.readTextFile(join(folder, "manifest.json")));
        assert.deepEqual(docker, [{
          Config: blobPathOf(manifest.config),
          RepoTags: [`rds-csi:${version}`],
          Layers: manifest.layers.map(blobPathOf),
        }]);
      }),
  );

  Deno.test({
    name: `the ${architecture} image has every tool with its libraries, and no way to rise`,
    ignore,
  }, () =>
    withScratch(async (folder) => {
      const { root } = await unpackArchive(archivePath(architecture), folder);
      const machine = { amd64: "X86-64", arm64: "AArch64" }[architecture];
      const programs = ["/usr/bin/rds-csi", ...allTools.map((tool) => findTool(root, systemToolPaths[tool]))];
      for (const program of programs) {
        const missing = await missingLibraries(root, program, machine);
        assert.deepEqual(missing, [], `${program} lacks libraries`);
      }
      assert.equal(await hostOutput("find", [root, "-type", "f", "-perm", "/6000"]), "");
      assert.equal(await hostOutput("find", [root, "!", "-uid", "0", "-o", "!", "-gid", "0"]), "");
    }));

  Deno.test({
    name: `the ${architecture} image has the pinned packages, their terms and a bill of them`,
    ignore,
  }, () =>
    withScratch(async (folder) => {
      const { root } = await unpackArchive(archivePath(architecture), folder);
      const pinned = readPins().filter((pin) => pin.architecture === architecture)
        .map(({ path }) => basename(path).split("_")[0]!).toSorted();
      const inside = [...Deno.readDirSync(join(root, "var/lib/dpkg/status.d"))].map(({ name }) => name)
        .toSorted();
      assert.deepEqual(inside, pinned);
      for (const name of inside) {
        const { size } = await Deno.stat(join(root, "usr/share/doc", name, "copyright"));
        assert.ok(size > 100, name);
      }
      const inImage = join(root, "usr/share/doc/rds-csi");
      const name = join(releaseFolder, `rds-csi-${version}`);
      assert.equal(digestOf(join(inImage, "licenses.txt")), digestOf(`${name}.licenses.txt`));
      assert.equal(
        digestOf(join(inImage, "image.cdx.json")),
        digestOf(`${name}-${architecture}.image.cdx.json`),
      );
      assert.equal(
        digestOf(join(root, "usr/bin/rds-csi")),
        digestOf(join(projectRoot, `dist/linux-${architecture}/rds-csi`)),
      );
      const bill = JSON.parse(await Deno.readTextFile(join(inImage, "image.cdx.json"))) as {
        components: readonly { name: string; purl?: string; hashes?: readonly { content: string }[] }[];
      };
      const debs = bill.components.filter(({ purl }) => purl?.startsWith("pkg:deb/"));
      assert.deepEqual(debs.map((deb) => deb.name), pinned);
      const digests = readPins().filter((pin) => pin.architecture === architecture).map(({ digest }) =>
        digest
      );
      assert.deepEqual(debs.map((deb) => deb.hashes?.[0]?.content).toSorted(), digests.toSorted());
      for (const part of ["rds-csi", "deno", "ssh2"]) {
        assert.ok(bill.components.some((component) => component.name === part), part);
      }
    }));

  Deno.test(
    { name: `the root file system of ${architecture}, unpacked once more, is the same`, ignore },
    () =>
      withScratch(async (folder) => {
        await makeImageRoot(architecture, join(folder, "again"));
        const { manifest } = await unpackArchive(archivePath(architecture), join(folder, "archive"));
        const first = join(folder, "first");
        await Deno.mkdir(first);
        await hostOutput("tar", [
          ...["--extract", `--file=${join(folder, "archive", blobPathOf(manifest.layers[0]!))}`],
          ...[`--directory=${first}`, "--preserve-permissions"],
        ]);
        assert.deepEqual(await filesBelow(join(folder, "again")), await filesBelow(first));
      }),
  );
}

Deno.test(
  { name: "images made again are the same, byte for byte", ignore },
  () =>
    withScratch(async (folder) => {
      const { config } = await unpackArchive(archivePath("amd64"), join(folder, "unpacked"));
      const out = join(folder, "again");
      await hostOutput(
        Deno.execPath(),
        ["run", "-A", "tools/release/release.ts", "--images", `--out=${out}`],
        {
          cwd: projectRoot,
          env: { SOURCE_DATE_EPOCH: String(Date.parse(config.created) / 1000) },
        },
      );
      for (const architecture of architectures) {
        assert.equal(
          digestOf(archivePath(architecture, out)),
          digestOf(archivePath(architecture)),
          architecture,
        );
      }
    }),
);

Deno.test(
  { name: "a pin that the mirror no longer has, or that has changed, fails", ignore },
  () =>
    withScratch(async (folder) => {
      const lock = join(folder, "packages.lock");
      const script = join(projectRoot, "deploy/image/make-root.sh");
      const [pin] = readPins();
      const attempt = async (line: string) => {
        await Deno.writeTextFile(lock, `${line}\n`);
        return await hostOutput(script, ["amd64", lock, join(folder, "root"), join(folder, "cache")], {
          env: { DEBIAN_MIRROR: `file://${folder}` },
        });
      };
      await assert.rejects(
        attempt(`amd64 ${pin!.digest} gone_1_amd64.deb`),
        /Cannot download the pinned packages/,
      );
      await Deno.writeTextFile(join(folder, "other_1_amd64.deb"), "something else");
      await assert.rejects(
        attempt(`amd64 ${pin!.digest} other_1_amd64.deb`),
        /Cannot download the pinned packages/,
      );
      await Deno.writeTextFile(join(folder, "cache", `${pin!.digest}.deb`), "damaged in the cache");
      await assert.rejects(attempt(`amd64 ${pin!.digest} other_1_amd64.deb`), /is damaged: remove it/);
    }),
);

function findTool(root: string, paths: readonly string[]): string {
  return paths.find((path) => isFile(join(root, path))) ??
    assert.fail(`none of ${paths.join(", ")} is in the image`);
}

/** Returns libraries that a program needs, directly or indirectly, and that are not where the loader searches. */
async function missingLibraries(root: string, program: string, machine: string): Promise<string[]> {
  const folders = [...Deno.readDirSync(join(root, "usr/lib"))].filter(({ name }) =>
    name.endsWith("-linux-gnu")
  )
    .map(({ name }) => join(root, "usr/lib", name));
  const missing: string[] = [];
  const seen = new Set<string>();
  const waiting = [join(root, program)];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const text = await hostOutput("readelf", ["--file-header", "--dynamic", file]);
    assert.match(text, new RegExp(`Machine:.*${machine}`), file);
    for (const [, name] of text.matchAll(/\(NEEDED\).*\[(.*)\]/g)) {
      if (seen.has(name!)) continue;
      seen.add(name!);
      const found = folders.map((folder) => join(folder, name!)).find((path) => isFile(path));
      if (found === undefined) missing.push(name!);
      else waiting.push(found);
    }
  }
  return missing;
}
