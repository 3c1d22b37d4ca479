import { join } from "node:path";
import { hostOutput } from "../../guest/kit/host_command.ts";
import type { ControlPlane } from "./control_plane.ts";
import { Daemon, Supervised } from "./daemon.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";

/** A sidecar: its program, which is also its service account's name, and what it is told beside the usual. */
interface Sidecar {
  readonly name: string;
  readonly namespace: string;
  readonly args: readonly string[];
}

/** Requests of the API that it may make in a second: by default 5, which lets 200 claims wait for minutes. */
const pace = ["--kube-api-qps=100", "--kube-api-burst=200"];
/** Longest that one call of the driver may take. */
const patience = "--timeout=60s";

const known: readonly Sidecar[] = [
  { name: "csi-provisioner", namespace: "default", args: [...pace, patience, "--extra-create-metadata"] },
  { name: "csi-attacher", namespace: "default", args: [...pace, patience, "--worker-threads=20"] },
  { name: "csi-resizer", namespace: "default", args: [...pace, patience] },
  { name: "csi-snapshotter", namespace: "default", args: [...pace, patience, "--extra-create-metadata"] },
  { name: "snapshot-controller", namespace: "kube-system", args: pace },
];

/** The sidecars of a controller, each with its own service account and the rules that its authors publish. */
export class Sidecars {
  readonly #daemons: Supervised[] = [];

  /** Installs custom resources and rules, and starts the sidecars at the driver's socket. */
  async start(plane: ControlPlane, tools: Tools, socket: string): Promise<void> {
    await install(plane, tools);
    for (const sidecar of known) this.#daemons.push(await startOne(plane, tools, socket, sidecar));
  }

  /** How often sidecars have ended by themselves, and were started again. */
  get restarts(): number {
    return this.#daemons.reduce((sum, { restarts }) => sum + restarts, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#daemons.map((daemon) => daemon.stop()));
  }
}

async function install(plane: ControlPlane, tools: Tools): Promise<void> {
  const config = await plane.kubeconfig("admin");
  const { resources, rules } = tools.manifests;
  for (const folder of [resources, rules]) {
    // The client of people, as these are manifests of people; it keeps its caches where it is told to.
    const args = [
      "--kubeconfig",
      config,
      "--cache-dir",
      join(plane.folder, "kubectl"),
      "apply",
      "-f",
      folder,
    ];
    await hostOutput(tools.program("kubectl"), args);
  }
  await until("the custom resources of snapshots", async () => {
    const found = await plane.api.find<{ resources: { name: string }[] }>("/apis/snapshot.storage.k8s.io/v1");
    const names = found?.resources.map(({ name }) => name) ?? [];
    return ["volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"].every((name) =>
      names.includes(name)
    );
  }, { limitSeconds: 60 });
}

async function startOne(
  plane: ControlPlane,
  tools: Tools,
  socket: string,
  { name, namespace, args }: Sidecar,
): Promise<Supervised> {
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const { status } = await plane.api.create<{ status: { token: string } }>(account, request);
  const config = await plane.writeKubeconfig(name, status.token);
  const own = name === "snapshot-controller" ? [] : [`--csi-address=${socket}`];
  const words = [tools.program(name), `--kubeconfig=${config}`, "-v=3", ...own, ...args];
  return new Supervised(() => Daemon.start(name, words, { folder: join(plane.folder, "log") }));
}
