import assert from "node:assert/strict";
import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import { findHelm } from "../../tools/deploy/helm.ts";
import { architectures } from "../../tools/image/root.ts";
import { findProgram, hostOutput } from "../guest/kit/host_command.ts";
import { freePort, projectRoot } from "../support/parts.ts";
import { ignoredBecause, isImageMade, unpackArchive, withScratch } from "./archive.ts";
import { withDaemon } from "./engines.ts";
import { archivePath, releaseFolder } from "./release_files.ts";

const helm = findHelm();
const lacking = [
  ...["apt-get", "dpkg-deb", "skopeo"].filter((name) => findProgram(name) === undefined),
  ...helm === undefined ? ["helm: make helm"] : [],
];
if (lacking.length > 0) ignoredBecause(`the test that pushes to a registry needs ${lacking.join(", ")}`);
const ignore = !isImageMade || lacking.length > 0;

Deno.test(
  { name: "image/push gives a registry both images under one tag, and the chart", ignore },
  () =>
    withScratch(async (folder) => {
      const port = freePort();
      const site = `localhost:${port}`;
      const configuration = {
        version: "0.1",
        storage: { filesystem: { rootdirectory: join(folder, "registry") } },
        http: { addr: `127.0.0.1:${port}` },
      };
      await Deno.writeTextFile(join(folder, "registry.yml"), JSON.stringify(configuration));
      const answers = async () => assert.equal(await status(`http://${site}/v2/`), 200);
      await withDaemon(["docker-registry", "serve", join(folder, "registry.yml")], answers, async () => {
        const pushed = await push(`${site}/storage/rds-csi`);
        const [image, chart] = pushed.trim().split("\n");
        const inspect = async (...args: string[]) =>
          JSON.parse(await hostOutput("skopeo", ["inspect", "--tls-verify=false", ...args]));
        const name = `docker://${site}/storage/rds-csi`;
        const index = await inspect("--raw", `${name}:${version}`);
        for (const [at, architecture] of architectures.entries()) {
          const made = await unpackArchive(archivePath(architecture), join(folder, architecture));
          assert.equal(index.manifests[at].digest, made.index.manifests[0]!.digest);
          assert.deepEqual(index.manifests[at].platform, { architecture, os: "linux" });
          const config = await inspect("--config", `--override-arch=${architecture}`, `${name}:${version}`);
          assert.equal(config.architecture, architecture);
        }
        // Each printed digest finds its object.
        const digest = /^(.*):[^:]*(@sha256:[0-9a-f]{64})$/.exec(image!)!;
        assert.equal(digest[1], `${site}/storage/rds-csi`);
        await inspect("--raw", `${name}${digest[2]}`);
        const where = `oci://${site}/storage/charts/rds-csi`;
        await hostOutput(helm!, [
          "pull",
          where,
          "--version",
          version,
          "--plain-http",
          "--destination",
          folder,
        ]);
        assert.deepEqual(
          await Deno.readFile(join(folder, `rds-csi-${version}.tgz`)),
          await Deno.readFile(join(releaseFolder, `rds-csi-${version}.chart.tgz`)),
        );
        // The same release has the same digests in every registry.
        const elsewhere = await push(`${site}/other/rds-csi`);
        const digests = (text: string) => [...text.matchAll(/sha256:[0-9a-f]+/g)].map(([found]) => found);
        assert.deepEqual(digests(elsewhere), digests(`${image}\n${chart}`));
        assert.equal(digests(elsewhere).length, 2);
      });
    }),
);

Deno.test({ name: "image/push refuses an invalid repository", ignore }, async () => {
  for (const repository of ["", "rds-csi", "https://registry.example.net/rds-csi", "registry/rds-csi:1"]) {
    await assert.rejects(push(repository), /REPOSITORY has to be/, repository);
  }
});

async function push(repository: string): Promise<string> {
  return await hostOutput(Deno.execPath(), ["run", "-A", "tools/image/push.ts"], {
    cwd: projectRoot,
    env: { REPOSITORY: repository, PLAIN_HTTP: "1" },
  });
}

async function status(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}
