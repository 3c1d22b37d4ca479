import { join } from "node:path";
import { hostOutput, isFile } from "../../../tools/host_command.ts";
import { findHelm } from "../../../tools/deploy/helm.ts";
import { downloadPackages } from "../../support/debian_archive.ts";
import { projectRoot } from "../../support/parts.ts";
import {
  buildFolder,
  goBuild,
  goOutput,
  linkerFlags,
  olderBuildFolder,
  type OlderKubernetes,
  toolsFolder,
} from "./go_build.ts";
import { packImage, plainImage } from "./image.ts";

/** The programs and files of the cluster, as paths. */
export interface Tools {
  /** Kubernetes' programs, etcd and the sidecars. */
  program(name: string): string;
  /** containerd, runc and the programs that they need. */
  readonly runtimeFolders: readonly string[];
  /** Manifests of external-snapshotter: custom resources, and the rules of its controller. */
  readonly manifests: { readonly resources: string; readonly rules: string };
  /** The tests' only image, as an archive. */
  readonly image: string;
  /** Renders the chart. */
  readonly helm: string;
}

/** The rules of the snapshot-controller, which the chart does not contain: module, and file in it. */
const rules = [
  "external-snapshotter/v8",
  "deploy/kubernetes/snapshot-controller/rbac-snapshot-controller.yaml",
] as const;
/** The name of the copied file. */
const rulesFile = "snapshot-controller.yaml";
const customResources = "external-snapshotter/client/v8";

/** The tools from the cache; missing ones are built first. `say` is called before long steps. */
export async function ensureTools(say: (line: string) => void, signal?: AbortSignal): Promise<Tools> {
  const folder = await toolsFolder();
  const done = join(folder, "done");
  if (!isFile(done)) {
    await Deno.mkdir(folder, { recursive: true });
    await buildPrograms(buildFolder, folder, programs, say, signal);
    await copyManifests(folder);
    await unpackRuntime(folder, signal);
    await packImage(join(folder, "image.tar"), plainImage);
    await Deno.writeTextFile(done, "");
  }
  return {
    program: (name) => join(folder, "bin", name),
    runtimeFolders: ["usr/bin", "usr/sbin"].map((part) => join(folder, "runtime", part)),
    manifests: {
      resources: join(folder, "manifests/resources"),
      rules: join(folder, "manifests/rules", rulesFile),
    },
    image: join(folder, "image.tar"),
    helm: await ensureHelm(),
  };
}

/** The same tools with another Kubernetes in the place of the newest; missing programs are built first. */
export async function olderTools(
  tools: Tools,
  release: OlderKubernetes,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<Tools> {
  const module = olderBuildFolder(release);
  const folder = await toolsFolder(module);
  await buildPrograms(module, folder, kubernetesPrograms, say, signal);
  return {
    ...tools,
    program: (name) => name in kubernetesPrograms ? join(folder, "bin", name) : tools.program(name),
  };
}

async function ensureHelm(): Promise<string> {
  const found = findHelm() ?? (await hostOutput(join(projectRoot, "tools/get-helm.sh"), ["--build"])).trim();
  if (found !== "") return found;
  throw new Error("Cannot render the chart because there is no Helm: make helm");
}

/** Builds a module's programs unless all are there, so that it continues after an interrupted build. */
async function buildPrograms(
  module: string,
  folder: string,
  programs: Readonly<Record<string, string>>,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const bin = join(folder, "bin");
  await Deno.mkdir(bin, { recursive: true });
  if (Object.keys(programs).every((name) => isFile(join(bin, name)))) return;
  const started = performance.now();
  say(`building ${Object.keys(programs).length} programs into ${folder}; 11 minutes of processor time`);
  // Built in another folder and renamed, so that files in the final one are complete.
  const fresh = join(folder, "fresh");
  const flags = await linkerFlags(module);
  await goBuild(module, ["build", "-ldflags", flags, "-o", `${fresh}/`, "tool"], signal);
  for (const [name, built] of Object.entries(programs)) {
    await Deno.rename(join(fresh, built), join(bin, name));
  }
  await Deno.remove(fresh, { recursive: true });
  say(`built in ${Math.round((performance.now() - started) / 1000)} s`);
}

async function copyManifests(folder: string): Promise<void> {
  const target = join(folder, "manifests");
  await Deno.mkdir(join(target, "resources"), { recursive: true });
  await Deno.mkdir(join(target, "rules"), { recursive: true });
  const definitions = join(await moduleFolder(customResources), "config/crd");
  for (const { name } of Deno.readDirSync(definitions)) {
    if (/storage\.k8s\.io_.*\.yaml$/.test(name)) {
      await copyText(join(definitions, name), join(target, "resources", name));
    }
  }
  const [module, file] = rules;
  await copyText(join(await moduleFolder(module), file), join(target, "rules", rulesFile));
}

/** Files of modules are read-only; their copies are not. */
async function copyText(from: string, to: string): Promise<void> {
  await Deno.writeTextFile(to, await Deno.readTextFile(from));
}

async function moduleFolder(module: string): Promise<string> {
  const name = `github.com/kubernetes-csi/${module}`;
  await goOutput(buildFolder, ["mod", "download", name]);
  return await goOutput(buildFolder, ["list", "-m", "-f", "{{.Dir}}", name]);
}

/** Debian's containerd and runc, unpacked and not installed. */
async function unpackRuntime(folder: string, signal?: AbortSignal): Promise<void> {
  const target = join(folder, "runtime");
  const packages = await downloadPackages(join(folder, "apt"), ["containerd", "runc"], signal);
  for (const file of packages) await hostOutput("dpkg-deb", ["--extract", file, target]);
  await Deno.remove(join(folder, "apt"), { recursive: true });
}

/** Kubernetes' programs, with Go's name of each: the last part of its package's path. */
const kubernetesPrograms: Readonly<Record<string, string>> = {
  "kube-apiserver": "kube-apiserver",
  "kube-controller-manager": "kube-controller-manager",
  "kube-scheduler": "kube-scheduler",
  "kubectl": "kubectl",
  "kubelet": "kubelet",
};

/** All programs of the cluster, likewise. */
const programs: Readonly<Record<string, string>> = {
  ...kubernetesPrograms,
  "etcd": "server",
  "csi-provisioner": "csi-provisioner",
  "csi-attacher": "csi-attacher",
  "csi-resizer": "csi-resizer",
  "csi-snapshotter": "csi-snapshotter",
  "snapshot-controller": "snapshot-controller",
};
