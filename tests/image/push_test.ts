import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import { findHelm } from "../../tools/deploy/helm.ts";
import { architectures } from "../../tools/image/root.ts";
import { blocksOf, readPage } from "../docs/pages.ts";
import { findProgram, hostOutput } from "../../tools/host_command.ts";
import { freePort, projectRoot } from "../support/parts.ts";
import { ignoredBecause, isImageMade, unpackArchive, withScratch } from "./archive.ts";
import { insecureRegistries, vfsStorage } from "./builder.ts";
import { withDaemon } from "./engines.ts";
import { archivePath, releaseFolder } from "./release_files.ts";

const helm = findHelm();
const lacking = [
  ...["apt-get", "dpkg-deb", "skopeo", "buildah"].filter((name) => findProgram(name) === undefined),
  ...helm === undefined ? ["helm: make helm"] : [],
  ...Deno.uid() === 0 ? [] : ["root"],
];
if (lacking.length > 0) ignoredBecause(`the test that pushes to a registry needs ${lacking.join(", ")}`);
const ignore = !isImageMade || lacking.length > 0;

/** The commands of the page, a block each. */
const [one, both, digest] = blocksOf(readPage("docs/guides/image.md"))
  .filter(({ heading }) => heading === "By a registry").map(({ text }) => text);

Deno.test(
  { name: "the page's commands give a registry one image or both under one tag, and the chart", ignore },
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
      const env = { ...await insecureRegistries(folder, site), ...await vfsStorage(folder) };
      const type = (text: string) =>
        hostOutput("sh", ["-e", "-c", `helm() { "${helm}" "$@" --plain-http; }\n${text}`], {
          cwd: projectRoot,
          env,
        });
      const pushed = async (block: string | undefined, to: string) => {
        await type(block!.replaceAll("registry.example.net", to));
        const found = (await type(digest!.replaceAll("registry.example.net", to))).trim();
        const text = await type(`skopeo inspect --raw docker://${to}/rds-csi@${found}`);
        return { digest: found, document: JSON.parse(text) as Pushed };
      };
      const answers = async () => assert.equal(await status(`http://${site}/v2/`), 200);
      await withDaemon(["docker-registry", "serve", join(folder, "registry.yml")], answers, async () => {
        const images = await Promise.all(architectures.map(async (architecture) => ({
          digest: (await unpackArchive(archivePath(architecture), join(folder, architecture)))
            .index.manifests[0]!.digest,
          platform: { architecture, os: "linux" },
        })));
        assert.equal((await pushed(one, site)).digest, images[0]!.digest);
        const { document, digest } = await pushed(both, site);
        const listed = document.manifests?.map(({ digest, platform }) => ({ digest, platform }));
        assert.deepEqual(listed, images);
        await type("buildah rmi --all --force");
        assert.equal((await pushed(both, `${site}/other`)).digest, digest);
        await type(`helm pull oci://${site}/charts/rds-csi --version ${version} --destination ${folder}`);
        const chart = join(releaseFolder, `rds-csi-${version}.chart.tgz`);
        const got = join(folder, basename(chart).replace(".chart", ""));
        assert.deepEqual(await Deno.readFile(got), await Deno.readFile(chart));
      });
    }),
);

/** What a registry has under a tag: an index of images, or one. */
interface Pushed {
  readonly manifests?: readonly { readonly digest: string; readonly platform: unknown }[];
}

async function status(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}
