import { join } from "node:path";
import { packImage, peoplesImage } from "../../cluster/kit/image.ts";
import type { Tools } from "../../cluster/kit/tools.ts";
import { readDeployFile } from "../../deploy/objects.ts";

/** A sidecar's image as the chart's values name it: whole, and the program that is in it. */
const sidecarImage = /image: (registry\.k8s\.io\/sig-storage\/([\w-]+):\S+)/g;

/** The sidecars that the chart installs unless told otherwise. */
const sidecars = ["csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"];

/**
 * Packs the images of the machine that are not the driver's, and answers their archives: the tests' own one, the one of
 * people's pods, and each sidecar's under the name that the chart's values have for it, with the program that is built here.
 */
export async function packImages(tools: Tools, folder: string): Promise<readonly string[]> {
  const people = join(folder, "people.tar");
  await packImage(people, peoplesImage);
  const archives = [tools.image, people];
  for (const [, image, program] of readDeployFile("chart/values.yaml").matchAll(sidecarImage)) {
    if (image === undefined || program === undefined || !sidecars.includes(program)) continue;
    const path = join(folder, `${program}.tar`);
    await packImage(path, {
      names: [image],
      config: { Env: ["PATH=/"], Entrypoint: [`/${program}`] },
      programs: { [program]: tools.program(program) },
      bare: true,
    });
    archives.push(path);
  }
  if (archives.length !== 2 + sidecars.length) {
    throw new Error(`Cannot pack the sidecars' images because the chart's values name others: ${archives}`);
  }
  return archives;
}
