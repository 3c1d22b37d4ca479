// What skopeo and buildah need in tests: where to keep images, and which registries have no TLS. All of it is told by files
// and variables that they read anyway, so that the tests type what people type.

import { join } from "node:path";

/** The environment in which skopeo and buildah use a registry without TLS. */
export async function insecureRegistries(home: string, site: string): Promise<Record<string, string>> {
  const folder = join(home, ".config/containers");
  await Deno.mkdir(folder, { recursive: true });
  const text = `[[registry]]\nlocation = "${site}"\ninsecure = true\n`;
  await Deno.writeTextFile(join(folder, "registries.conf"), text);
  return { HOME: home };
}

/** The environment in which buildah keeps its images in a folder, with no need of a file system in layers. */
export async function vfsStorage(folder: string): Promise<Record<string, string>> {
  const file = join(folder, "storage.conf");
  const text = `[storage]\ndriver = "vfs"\ngraphroot = "${folder}/storage"\nrunroot = "${folder}/run"\n`;
  await Deno.writeTextFile(file, text);
  return { CONTAINERS_STORAGE_CONF: file, BUILDAH_ISOLATION: "chroot" };
}
