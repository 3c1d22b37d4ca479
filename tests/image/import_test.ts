import assert from "node:assert/strict";
import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import { findProgram, hostOutput } from "../../tools/host_command.ts";
import { ignoredBecause, type ImageConfig, isImageMade, unpackArchive, withScratch } from "./archive.ts";
import { engineOutput, withDaemon } from "./engines.ts";
import { archivePath } from "./release_files.ts";

const needed = [
  ...["apt-get", "dpkg-deb", "skopeo"].filter((name) => findProgram(name) === undefined),
  ...Deno.uid() === 0 ? [] : ["root"],
];
if (needed.length > 0) ignoredBecause(`the tests that import the image need ${needed.join(", ")}`);
const ignore = !isImageMade || needed.length > 0;

/** The version output of each tool of the image; in a bare folder e2fsck first complains about /dev/null. */
const tools: readonly (readonly [string, RegExp, ...string[]])[] = [
  ["/usr/bin/rds-csi", new RegExp(`^rds-csi ${version} `), "version"],
  ["nvme", /^nvme version 2\./, "version"],
  ["mkfs.ext4", /^mke2fs 1\./, "-V"],
  ["mkfs.xfs", /^mkfs\.xfs version 6\./, "-V"],
  ["blkid", /^blkid from util-linux 2\./, "-V"],
  ["xfs_logprint", /^xfs_logprint version 6\./, "-V"],
  ["e2fsck", /^e2fsck 1\./m, "-V"],
  ["resize2fs", /^resize2fs 1\./, "--"],
  ["mount", /^mount from util-linux 2\./, "--version"],
  ["sh", /^it runs$/m, "-c", "echo it runs"],
];

/** resize2fs has no version flag: without a device it prints its version and fails. */
const anyway = ["-c", '"$@" 2>&1 || [ "$1" = resize2fs ]', "sh"];

Deno.test(
  { name: "containerd imports the image, and every tool in a container of it runs", ignore },
  () =>
    withScratch(async (folder) => {
      const socket = join(folder, "containerd.sock");
      const ctr = (...args: string[]) => engineOutput("ctr", ["--address", socket, ...args]);
      const daemon = [
        "containerd",
        "--address",
        socket,
        "--root",
        `${folder}/root`,
        "--state",
        `${folder}/state`,
      ];
      await withDaemon(daemon, () => ctr("version"), async () => {
        await ctr("images", "import", "--snapshotter=native", archivePath("amd64"));
        // The name that the kubelet uses for the chart's default.
        const name = `docker.io/library/rds-csi:${version}`;
        assert.equal((await ctr("images", "ls", "--quiet")).trim(), name);
        for (const [at, [tool, says, ...args]] of tools.entries()) {
          // The image's user runs the executable directly.
          const command = tool.startsWith("/") ? [tool, ...args] : ["sh", ...anyway, tool, ...args];
          const flags = ["--rm", "--snapshotter=native", "--read-only"];
          const said = await ctr("run", ...flags, name, `rds-csi-test-${at}`, ...command);
          assert.match(said, says, tool);
        }
      });
    }),
);

const emulator = findProgram("qemu-aarch64-static");
if (emulator === undefined) ignoredBecause("the test of the arm64 image's tools needs qemu-user-static");

Deno.test({
  name: "every tool of the arm64 image runs in emulation",
  ignore: ignore || emulator === undefined,
}, () =>
  withScratch(async (folder) => {
    const { root } = await unpackArchive(archivePath("arm64"), folder);
    await Deno.copyFile(emulator!, join(root, "emulator"));
    for (const [tool, says, ...args] of tools.slice(1)) {
      const path = (await hostOutput("chroot", [
        root,
        ...["/emulator", "/usr/bin/dash", "-c", 'command -v "$1"', "sh", tool],
      ])).trim();
      const said = await hostOutput("sh", [
        ...["-c", '"$@" 2>&1 || [ "$4" = /usr/sbin/resize2fs ]', "sh"],
        ...["chroot", root, "/emulator", path, ...args],
      ]);
      assert.match(said, says, tool);
    }
  }));

Deno.test(
  { name: "docker load of Docker 20.10 takes the archive", ignore },
  () =>
    withScratch(async (folder) => {
      const host = `unix://${folder}/docker.sock`;
      const docker = (...args: string[]) => engineOutput("docker", ["--host", host, ...args]);
      await Deno.writeTextFile(join(folder, "daemon.json"), "{}");
      const daemon = [
        ...["dockerd", `--host=${host}`, `--data-root=${folder}/data`, `--exec-root=${folder}/exec`],
        ...[`--pidfile=${folder}/pid`, `--config-file=${folder}/daemon.json`, "--storage-driver=vfs"],
        ...["--bridge=none", "--iptables=false", "--ip6tables=false"],
      ];
      await withDaemon(daemon, () => docker("version"), async () => {
        assert.equal((await docker("version", "--format={{.Server.Version}}")).slice(0, 6), "20.10.");
        await docker("load", "--input", archivePath("amd64"));
        const [image] = JSON.parse(await docker("image", "inspect", `rds-csi:${version}`)) as [
          { readonly Config: ImageConfig["config"]; readonly RootFS: { readonly Layers: readonly string[] } },
        ];
        const { config } = await unpackArchive(archivePath("amd64"), join(folder, "unpacked"));
        assert.deepEqual(image.RootFS.Layers, config.rootfs.diff_ids);
        assert.deepEqual(image.Config.Entrypoint, config.config.Entrypoint);
        assert.equal(image.Config.User, config.config.User);
      });
    }),
);

Deno.test(
  { name: "skopeo copies the archive, as the OCI's and as Docker's", ignore },
  () =>
    withScratch(async (folder) => {
      const { config } = await unpackArchive(archivePath("arm64"), join(folder, "unpacked"));
      for (const kind of ["oci-archive", "docker-archive"]) {
        const to = join(folder, kind);
        await hostOutput("skopeo", [
          ...["--insecure-policy", "--override-arch=arm64", "copy", "--quiet"],
          ...[`${kind}:${archivePath("arm64")}`, `oci:${to}:${version}`],
        ]);
        const text = await hostOutput("skopeo", ["inspect", "--config", "--raw", `oci:${to}:${version}`]);
        const copied = JSON.parse(text) as ImageConfig;
        assert.equal(copied.config.User, config.config.User);
        assert.deepEqual(copied.rootfs.diff_ids, config.rootfs.diff_ids, kind);
      }
    }),
);
