import assert from "node:assert/strict";
import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import { architectures } from "../../tools/image/root.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { findProgram, hostOutput } from "../../tools/host_command.ts";
import { isLong } from "../support/long.ts";
import { projectRoot } from "../support/parts.ts";
import { filesBelow, ignoredBecause, isImageMade, unpackArchive, withScratch } from "./archive.ts";
import { importBase, vfsStorage } from "./builder.ts";
import { archivePath } from "./release_files.ts";

const lacking = [
  ...["apt-get", "dpkg-deb", "git", "buildah"].filter((name) => findProgram(name) === undefined),
  ...Deno.uid() === 0 ? [] : ["root"],
];
if (lacking.length > 0) ignoredBecause(`the test that builds the Dockerfile needs ${lacking.join(", ")}`);

/** The page's command. */
const [typed] = blocksOf(readPage("docs/guides/image.md"))
  .filter(({ heading }) => heading === "By a Dockerfile").map(({ text }) => text);

/** Copies what a clean checkout has: without git's own folder, and without what was built. */
const checkOut = 'mkdir "$2"; git -C "$1" ls-files -z | tar -C "$1" --null -T - -c | tar -C "$2" -x';

Deno.test({
  name:
    "the Dockerfile, built by buildah from a clean checkout, gives the same files and settings as make image",
  ignore: !isImageMade || lacking.length > 0,
}, () =>
  withScratch(async (folder) => {
    const env = await vfsStorage(folder);
    const run = (...command: string[]) =>
      hostOutput(command[0]!, command.slice(1), { cwd: projectRoot, env });
    const sources = join(folder, "checkout");
    await run("sh", "-c", checkOut, "sh", projectRoot, sources);
    const base = await importBase(run);
    for (const architecture of isLong ? architectures : architectures.slice(0, 1)) {
      const made = await unpackArchive(archivePath(architecture), join(folder, "made", architecture));
      const given = {
        BASE: base,
        REVISION: made.config.config.Labels["org.opencontainers.image.revision"],
        SOURCE_DATE_EPOCH: Date.parse(made.config.created) / 1000,
        // buildah of Debian 12 does not find this machine's base for another platform.
        TARGETARCH: architecture,
      };
      const args = Object.entries(given).map(([name, value]) => `--build-arg=${name}=${value}`).join(" ");
      await run(
        "sh",
        "-c",
        typed!.replace("docker", "buildah").replace(/ \.$/, ` --pull-never ${args} ${sources}`),
      );
      const file = join(folder, `${architecture}.tar`);
      await run("buildah", "push", "--quiet", `rds-csi:${version}`, `oci-archive:${file}`);
      const built = await unpackArchive(file, join(folder, "built", architecture));
      assert.deepEqual(await filesBelow(built.root), await filesBelow(made.root));
      const settings = ({ config }: typeof built) => [
        ...[config.os, config.config.User, config.config.Env, config.config.Entrypoint, config.config.Cmd],
        Object.entries(config.config.Labels).filter(([label]) => !label.startsWith("io.buildah.")).toSorted(),
      ];
      assert.deepEqual(settings(built), settings(made));
      // Only this one's executable runs here.
      if (architecture !== architectures[0]) continue;
      const container = (await run("buildah", "from", "--pull-never", `rds-csi:${version}`)).trim();
      const told = await run("buildah", "run", container, "/usr/bin/rds-csi", "version");
      assert.ok(told.startsWith(`rds-csi ${version} `), told);
    }
  }));
