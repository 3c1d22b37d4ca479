import { join } from "node:path";
import { parse } from "yaml";
import { packImage, peoplesImage } from "../../cluster/kit/image.ts";
import type { Tools } from "../../cluster/kit/tools.ts";
import { imagesIn } from "../../../tools/image/chart_images.ts";
import { readDeployFile } from "../../deploy/objects.ts";

/** The sidecars that the chart installs unless told otherwise. */
const sidecars = ["csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"];

/**
 * Packs the images of the machine that are not the driver's, and answers their archives: the tests' own one, the one of
 * people's pods, and each sidecar's with the program that is built here.
 */
export async function packImages(tools: Tools, folder: string): Promise<readonly string[]> {
  const people = join(folder, "people.tar");
  await packImage(people, peoplesImage);
  const archives = [tools.image, people];
  for (const name of sidecars) archives.push(await packSidecar(name, tools.program(name), folder));
  return archives;
}

/** What the chart gets because its images are packed here: their names, without the digests of the published ones. */
export function valuesWithoutDigests(): object {
  const found = withoutDigests(parse(readDeployFile("chart/values.yaml")));
  return typeof found === "object" ? found : {};
}

function withoutDigests(value: unknown): object | string | undefined {
  if (typeof value === "string") return value.includes("@sha256:") ? value.replace(/@.*/, "") : undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = Object.entries(value).map(([name, inside]) => [name, withoutDigests(inside)] as const)
    .filter(([, inside]) => inside !== undefined);
  return fields.length === 0 ? undefined : Object.fromEntries(fields);
}

/** Packs a program as a sidecar's image, under the name that the chart's values have for it, and answers the archive. */
async function packSidecar(name: string, program: string, folder: string): Promise<string> {
  const image = imagesIn(readDeployFile("chart/values.yaml")).find((one) => one.name.includes(`/${name}:`))
    ?.name;
  if (image === undefined) throw new Error(`the chart's values name no image of ${name}`);
  const path = join(folder, `${name}.tar`);
  await packImage(path, {
    names: [image],
    config: { Env: ["PATH=/"], Entrypoint: [`/${name}`] },
    programs: { [name]: program },
    bare: true,
  });
  return path;
}
