import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import { architectures, cacheFolder } from "../../tools/image/root.ts";
import { findProgram, hostOutput } from "../guest/kit/host_command.ts";
import { DebianArchive, release } from "../support/debian_archive.ts";
import { projectRoot } from "../support/parts.ts";
import { filesBelow, ignoredBecause, isImageMade, unpackArchive, withScratch } from "./archive.ts";
import { archivePath } from "./release_files.ts";

const lacking = [
  ...["apt-get", "dpkg-deb", "buildah"].filter((name) => findProgram(name) === undefined),
  ...Deno.uid() === 0 ? [] : ["root"],
];
if (lacking.length > 0) ignoredBecause(`the test that builds the Dockerfile needs ${lacking.join(", ")}`);

/** The packages of debian:bookworm-slim that the Dockerfile's commands need; the image itself is in a registry. */
const baseTools = ["apt", "base-files", "coreutils", "dash", "dpkg", "findutils", "grep", "sed", "tar"];

Deno.test({
  name: "the Dockerfile, built by buildah without a daemon, gives the same files and settings as make image",
  ignore: !isImageMade || lacking.length > 0,
}, () =>
  withScratch(async (folder) => {
    const buildah = (...args: string[]) =>
      hostOutput("buildah", [
        ...[`--root=${folder}/storage`, `--runroot=${folder}/run`, "--storage-driver=vfs", ...args],
      ], { cwd: projectRoot, env: { BUILDAH_ISOLATION: "chroot" } });
    const base = (await buildah("from", "scratch")).trim();
    await buildah("copy", "--quiet", base, await ensureBase(), "/");
    await buildah("commit", "--quiet", "--rm", base, "docker.io/library/debian:bookworm-slim");
    for (const architecture of architectures) {
      const made = await unpackArchive(archivePath(architecture), join(folder, "made", architecture));
      const revision = made.config.config.Labels["org.opencontainers.image.revision"];
      // buildah in Debian 12 does not find this machine's base for another platform, although its files are of that
      // platform.
      await buildah("build", ...[
        ...[
          "--pull-never",
          "--quiet",
          `--build-arg=TARGETARCH=${architecture}`,
          `--tag=rds-csi:${architecture}`,
        ],
        ...["--file=deploy/image/Dockerfile", "--ignorefile=deploy/image/Dockerfile.dockerignore"],
        ...[`--build-arg=VERSION=${version}`, `--build-arg=REVISION=${revision}`, "."],
      ]);
      const file = join(folder, `${architecture}.tar`);
      await buildah("push", "--quiet", `rds-csi:${architecture}`, `oci-archive:${file}`);
      const built = await unpackArchive(file, join(folder, "built", architecture));
      assert.deepEqual(await filesBelow(built.root), await filesBelow(made.root));
      const settings = ({ config }: typeof built) => [
        ...[config.os, config.config.User, config.config.Env, config.config.Entrypoint, config.config.Cmd],
        Object.entries(config.config.Labels).filter(([label]) => !label.startsWith("io.buildah.")).toSorted(),
      ];
      assert.deepEqual(settings(built), settings(made));
    }
  }));

/** Makes a stand-in for debian:bookworm-slim from Debian's packages: unpacked on the first call, and kept. */
async function ensureBase(): Promise<string> {
  const digest = createHash("sha256").update(baseTools.join()).digest("hex").slice(0, 16);
  const folder = join(cacheFolder(), `image-base-${digest}`);
  if (findBase(folder)) return folder;
  await Deno.mkdir(cacheFolder(), { recursive: true });
  const scratch = await Deno.makeTempDir({ dir: cacheFolder(), prefix: "image-base-" });
  try {
    const root = join(scratch, "root");
    for (const name of ["bin", "sbin", "lib", "lib64"]) {
      await Deno.mkdir(join(root, "usr", name), { recursive: true });
      await Deno.symlink(`usr/${name}`, join(root, name));
    }
    const archive = await DebianArchive.open(join(scratch, "apt"), release);
    const script = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$2"';
    for (const deb of await archive.downloadWhole(baseTools)) {
      await hostOutput("sh", ["-c", script, "sh", deb, root]);
    }
    await Deno.chmod(root, 0o755);
    await Deno.rename(root, folder);
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
  return folder;
}

function findBase(folder: string): boolean {
  try {
    return Deno.statSync(folder).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
