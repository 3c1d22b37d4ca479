// The bill of materials of an image: its Debian packages, the executable, and the executable's parts.

import { basename, join } from "node:path";
import { billText, type Component, componentsOf, executableOf, type Released } from "../release/sbom.ts";
import { type Architecture, readPins } from "./root.ts";

/**
 * As CycloneDX 1.6, for a platform's root file system and the executable. The same image gives the same text.
 *
 * @throws {Error} when a package in the root was not pinned
 */
export async function imageBill(
  released: Released,
  architecture: Architecture,
  root: string,
): Promise<string> {
  const executable = executableOf(released);
  const { version, commit, seconds } = released;
  const own = {
    type: "container",
    "bom-ref": `pkg:oci/rds-csi@${version}?arch=${architecture}`,
    name: "rds-csi",
    version,
    properties: [{ name: "commit", value: commit }],
  };
  const runtimes = released.runtimes.filter((runtime) => runtime.architecture === architecture);
  const inside = componentsOf({ ...released, runtimes });
  const parts = [...await packagesIn(root, architecture), executable, ...inside];
  return billText(own, parts, seconds);
}

/** The licence of each package is in the image, as /usr/share/doc/NAME/copyright. */
async function packagesIn(root: string, architecture: Architecture): Promise<Component[]> {
  const folder = join(root, "var/lib/dpkg/status.d");
  const pins = readPins().filter((pin) => pin.architecture === architecture);
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toSorted();
  return await Promise.all(names.map(async (name) => {
    const control = await Deno.readTextFile(join(folder, name));
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(control)?.[1] ?? "";
    const version = field("Version");
    const pin = pins.find(({ path }) => basename(path).startsWith(`${name}_`));
    if (pin === undefined) throw new Error(`The package ${name} is in the image and not pinned`);
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}` +
      `?arch=${field("Architecture")}&distro=debian-12`;
    const hashes = [{ alg: "SHA-256", content: pin.digest }];
    return { type: "library", "bom-ref": purl, name, version, purl, hashes };
  }));
}
