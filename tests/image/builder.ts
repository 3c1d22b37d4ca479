// What skopeo and buildah need in tests: where to keep images, which registries have no TLS, and a base. All of it is told
// by files and variables that they read anyway, so that the tests type what people type.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { cacheFolder } from "../../tools/image/root.ts";
import { hostOutput, isFolder } from "../../tools/host_command.ts";
import { DebianArchive, release } from "../support/debian_archive.ts";

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

/** The Debian packages with what the Dockerfile expects of its base, which itself is in a registry. */
const basePackages = [
  "apt",
  "base-files",
  "coreutils",
  "dash",
  "dpkg",
  "findutils",
  "grep",
  "npm",
  "sed",
  "tar",
];

/** What of them npm never reads, half of their files: buildah copies the whole base for each stage. */
const unread = [
  ...["doc", "man", "locale"].map((name) => `usr/share/${name}`),
  ...["@babel", "@types", "core-js", "core-js-pure"].map((name) => `usr/share/nodejs/${name}`),
];

/** The certificates of the machine, which may be the only ones for its way to a registry. */
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/**
 * Makes a base of Debian packages in buildah's storage, with this machine's certificates and, where they are given, its
 * compiler and runtimes; returns its name.
 */
export async function importBase(run: (...command: string[]) => Promise<string>): Promise<string> {
  const name = "localhost/base";
  const container = (await run("buildah", "from", "scratch")).trim();
  await run("buildah", "copy", "--quiet", container, await ensureBase(), "/");
  await run("buildah", "copy", "--quiet", container, certificates, certificates);
  const variables: [string, string][] = [
    ["DENO_TLS_CA_STORE", "system"],
    ...["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"].map((each): [string, string] => [each, certificates]),
  ];
  for (const variable of ["DENO_COMPILE", "DENORT_BIN", "DENORT_BIN_ARM64"]) {
    const file = Deno.env.get(variable);
    if (!file) continue;
    await run("buildah", "copy", "--quiet", container, await Deno.realPath(file), `/compiler/${variable}`);
    variables.push([variable, `/compiler/${variable}`]);
  }
  const flags = variables.map(([key, value]) => `--env=${key}=${value}`);
  await run("buildah", "config", ...flags, container);
  await run("buildah", "commit", "--quiet", "--rm", container, name);
  return name;
}

/** Unpacks the packages on the first call; they are kept. */
async function ensureBase(): Promise<string> {
  const digest = createHash("sha256").update([...basePackages, ...unread].join()).digest("hex").slice(0, 16);
  const folder = join(cacheFolder(), `image-base-${digest}`);
  if (isFolder(folder)) return folder;
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
    for (const deb of await archive.downloadWhole(basePackages)) {
      await hostOutput("sh", ["-c", script, "sh", deb, root]);
    }
    for (const path of unread) await Deno.remove(join(root, path), { recursive: true });
    await Deno.chmod(root, 0o755);
    await Deno.rename(root, folder);
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
  return folder;
}
