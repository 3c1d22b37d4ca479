// Pushes the images and the chart of dist/release to a registry: REPOSITORY=… `deno run -A tools/image/push.ts`.
// skopeo does it, with the logins of `skopeo login`. PLAIN_HTTP=1 allows a registry without TLS; RELEASE is the folder of
// the release. The same release gets the same digests, wherever it is pushed.

import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { version } from "../../src/cli/build_version.ts";
import { complain, print } from "../print.ts";
import {
  type Blob,
  blobOf,
  blobPath,
  type Descriptor,
  indexOf,
  jsonBlob,
  layoutText,
  manifestOf,
} from "./oci.ts";
import { architectures } from "./root.ts";
import { run } from "./run.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Helm's media types of a chart's parts: https://helm.sh/docs/topics/registries/ */
const CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json";
const CHART_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

async function main(): Promise<void> {
  const repository = Deno.env.get("REPOSITORY") ?? "";
  if (!/^[\w.-]+(?::\d+)?(?:\/[\w.-]+)+$/.test(repository)) {
    throw new Error("REPOSITORY has to be where the image goes, as registry.example.net/rds-csi");
  }
  const release = resolve(ROOT, Deno.env.get("RELEASE") || "dist/release");
  const scratch = await Deno.makeTempDir({ prefix: "rds-csi-push-" });
  try {
    const image = await layOutImages(release, join(scratch, "image"));
    const chart = await layOutChart(release, join(scratch, "chart"));
    await push(join(scratch, "image"), image, repository);
    await push(join(scratch, "chart"), chart, chartRepository(repository));
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

/** Beside the image, because Helm requires the chart's name at the end. */
function chartRepository(repository: string): string {
  return `${dirname(repository)}/charts/rds-csi`;
}

async function push(layout: string, { digest }: Descriptor, repository: string): Promise<void> {
  const plain = Deno.env.get("PLAIN_HTTP") === "1" ? ["--dest-tls-verify=false"] : [];
  const to = `${repository}:${version}`;
  await run("skopeo", [
    ...["--insecure-policy", "copy", "--all", "--preserve-digests", "--quiet", ...plain],
    ...[`oci:${layout}:${version}`, `docker://${to}`],
  ]);
  print(`${to}@${digest}`);
}

/** One index of the images of all platforms. */
async function layOutImages(release: string, layout: string): Promise<Descriptor> {
  await Deno.mkdir(layout);
  const manifests: Descriptor[] = [];
  for (const architecture of architectures) {
    const file = join(release, `rds-csi-${version}-${architecture}.oci.tar`);
    await run("tar", ["--extract", `--file=${file}`, `--directory=${layout}`, "blobs", "index.json"]);
    const index = JSON.parse(await Deno.readTextFile(join(layout, "index.json"))) as {
      manifests: readonly Descriptor[];
    };
    for (const { mediaType, digest, size, platform } of index.manifests) {
      manifests.push({ mediaType, digest, size, ...(platform === undefined ? {} : { platform }) });
    }
  }
  return await finish(layout, await indexOf(manifests));
}

async function layOutChart(release: string, layout: string): Promise<Descriptor> {
  await Deno.mkdir(join(layout, "blobs/sha256"), { recursive: true });
  const file = join(release, `rds-csi-${version}.chart.tgz`);
  const described: unknown = parse(
    await run("tar", ["--extract", `--file=${file}`, "-O", "rds-csi/Chart.yaml"]),
  );
  const config = await jsonBlob(CHART_CONFIG, described);
  const content = await blobOf(await Deno.readFile(file), CHART_CONTENT);
  for (const blob of [config, content]) await write(layout, blob);
  return await finish(layout, await manifestOf(config.descriptor, [content.descriptor]));
}

/** Makes it the top document of the layout. */
async function finish(layout: string, top: Blob): Promise<Descriptor> {
  await write(layout, top);
  const annotations = { "org.opencontainers.image.ref.name": version };
  const index = await indexOf([{ ...top.descriptor, annotations }]);
  await Deno.writeFile(join(layout, "index.json"), index.bytes);
  await Deno.writeTextFile(join(layout, "oci-layout"), layoutText);
  return top.descriptor;
}

async function write(layout: string, { descriptor, bytes }: Blob): Promise<void> {
  await Deno.writeFile(join(layout, blobPath(descriptor)), bytes);
}

await main().catch((error) => {
  complain(error instanceof Error ? error.message : String(error));
  Deno.exit(1);
});
