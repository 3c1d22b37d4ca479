import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { findProgram, hostOutput } from "../../../tools/host_command.ts";

/** The name of the only image; pods use it with `imagePullPolicy: Never`. */
export const imageName = "rds-csi.test/busybox:1";

/** Machines by their names in images. */
const architectures: Readonly<Record<string, string>> = { x86_64: "amd64", aarch64: "arm64" };

/** The content of an image besides this machine's busybox. */
export interface ImageContent {
  /** Its names for pods. */
  readonly names: readonly string[];
  /** Its configuration, in an image's form. */
  readonly config: {
    readonly Env: readonly string[];
    readonly Entrypoint?: readonly string[];
    readonly Cmd?: readonly string[];
  };
  /** Programs of this machine, by their paths in the image; in `bin` they replace busybox's. */
  readonly programs?: Readonly<Record<string, string>>;
  /** Whether it contains only these programs, like the published images of the sidecars. @default {false} */
  readonly bare?: boolean;
}

/** The default image of the tests. */
export const plainImage: ImageContent = {
  names: [imageName],
  config: { Env: ["PATH=/bin"], Cmd: ["sleep", "1000000"] },
};

/** This machine's busybox with the name of the public image. */
export const peoplesImage: ImageContent = {
  ...plainImage,
  names: ["docker.io/library/busybox:1.37"],
};

/** Packs this machine's busybox, which is statically linked, as an image into an archive at `path`. */
export async function packImage(path: string, content: ImageContent): Promise<void> {
  const scratch = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-image-" });
  try {
    const root = join(scratch, "root");
    for (const folder of ["bin", "dev", "etc", "proc", "sys", "tmp"]) {
      await Deno.mkdir(join(root, folder), { recursive: true });
    }
    for (const [target, program] of Object.entries(content.programs ?? {})) {
      await Deno.mkdir(dirname(join(root, target)), { recursive: true });
      await Deno.copyFile(program, join(root, target));
      await Deno.chmod(join(root, target), 0o755);
    }
    if (content.bare !== true) await addBusybox(root, Object.keys(content.programs ?? {}));
    await Deno.chmod(join(root, "tmp"), 0o1777);
    await packLayer(scratch, root, content);
    await hostOutput("tar", ["-C", scratch, "-cf", path, "manifest.json", "config.json", "layer.tar"]);
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

/** @param taken paths in the image that have other programs */
async function addBusybox(root: string, taken: readonly string[]): Promise<void> {
  const busybox = findProgram("busybox");
  if (busybox === undefined) throw new Error("Cannot pack the image because there is no busybox");
  await Deno.copyFile(busybox, join(root, "bin/busybox"));
  const applets = (await hostOutput(busybox, ["--list"])).split("\n").filter((name) => /^\w/.test(name));
  for (const name of applets.filter((name) => name !== "busybox" && !taken.includes(`bin/${name}`))) {
    await Deno.symlink("busybox", join(root, "bin", name));
  }
}

async function packLayer(scratch: string, root: string, { names, config: how }: ImageContent): Promise<void> {
  const layer = join(scratch, "layer.tar");
  await hostOutput("tar", ["-C", root, "--owner=0", "--group=0", "-cf", layer, "."]);
  const digest = createHash("sha256").update(await Deno.readFile(layer)).digest("hex");
  const config = {
    architecture: architectures[Deno.build.arch],
    os: "linux",
    config: how,
    rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
  };
  const manifest = [{ Config: "config.json", RepoTags: names, Layers: ["layer.tar"] }];
  await Deno.writeTextFile(join(scratch, "config.json"), JSON.stringify(config));
  await Deno.writeTextFile(join(scratch, "manifest.json"), JSON.stringify(manifest));
}
