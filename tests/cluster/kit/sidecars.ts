import { join } from "node:path";
import type { Container } from "../../deploy/objects.ts";
import type { Chart } from "./chart.ts";
import type { ControlPlane } from "./control_plane.ts";
import { Daemon, Supervised } from "./daemon.ts";
import { accountKubeconfig } from "./deployment.ts";
import { argsForRig, envForRig, type Fates, kept } from "./rendered_args.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";
import { type Driver, type DriverPlace, makeController } from "./driver.ts";

/** The environment of one controller's sidecars. */
export interface SidecarPlace {
  readonly plane: ControlPlane;
  readonly tools: Tools;
  readonly chart: Chart;
  /** The driver's socket. */
  readonly socket: string;
  /** The kubeconfig of the service account that they share with the driver. */
  readonly kubeconfig: string;
  /** The name of their pod, for their logs. */
  readonly pod: string;
}

/** The sidecars of a controller in the chart. */
export class Sidecars {
  readonly #location: SidecarPlace;
  readonly #daemons: Supervised[] = [];

  constructor(location: SidecarPlace) {
    this.#location = location;
  }

  /** Starts them. */
  async start(signal: AbortSignal): Promise<void> {
    for (const container of this.#location.chart.sidecars) {
      this.#daemons.push(await startOne(container, this.#location, signal));
    }
  }

  /** How often sidecars have ended by themselves, and were started again. */
  get restarts(): number {
    return this.#daemons.reduce((sum, { restarts }) => sum + restarts, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#daemons.splice(0).map((daemon) => daemon.stop()));
  }
}

async function startOne(
  container: Container,
  location: SidecarPlace,
  signal: AbortSignal,
): Promise<Supervised> {
  const { plane, tools, chart, socket, kubeconfig, pod } = location;
  const sidecarFates: Fates = {
    ...kept("timeout", "v", "worker-threads", "workers", "handle-volume-inuse-error"),
    ...kept(
      "default-fstype",
      "extra-create-metadata",
      "kube-api-qps",
      "kube-api-burst",
      "retry-interval-max",
      "enable-capacity",
      "capacity-ownerref-level",
    ),
    // There is no pod with a separate folder for the socket.
    "csi-address": () => `--csi-address=${socket}`,
  };
  const knowsItsPod = container.env?.some(({ name }) => name === "POD_NAME") === true;
  const env = envForRig(container, {
    "metadata.namespace": chart.namespace,
    ...knowsItsPod ? { "metadata.name": await podOfDeployment(location, signal) } : {},
  });
  // Instead of the rest of that folder.
  const text = [...argsForRig(container, sidecarFates), `--kubeconfig=${kubeconfig}`];
  const { name } = container;
  return supervised(`${pod}-${name}`, [tools.program(name), ...text], plane, env);
}

/** A pod of the Deployment, which no node runs: what the sidecar owns is the Deployment's, to which the pod leads it. */
async function podOfDeployment({ plane, chart }: SidecarPlace, signal: AbortSignal): Promise<string> {
  const selector = encodeURIComponent("app.kubernetes.io/component=controller");
  const path = `/api/v1/namespaces/${chart.namespace}/pods?labelSelector=${selector}`;
  return await until("a pod of the Deployment", async () => (await plane.api.list(path))[0]?.metadata.name, {
    limitSeconds: 60,
    signal,
  });
}

/** What is none of a driver's: it makes the objects that snapshotters work on, under the rules that its authors publish. */
export async function startSnapshotController(plane: ControlPlane, tools: Tools): Promise<Supervised> {
  const name = "snapshot-controller";
  const kubeconfig = await accountKubeconfig(plane, "kube-system", name);
  // The default of 5 requests per second would delay many snapshots.
  const rateLimiter = ["--kube-api-qps=100", "--kube-api-burst=200"];
  return supervised(
    name,
    [tools.program(name), `--kubeconfig=${kubeconfig}`, "-v=3", ...rateLimiter],
    plane,
    {},
  );
}

function supervised(
  name: string,
  text: readonly string[],
  plane: ControlPlane,
  env: Readonly<Record<string, string>>,
): Supervised {
  return new Supervised(() => Daemon.start(name, text, { folder: join(plane.folder, "log"), env }));
}

/** One pod of the controller: the driver, and its own set of sidecars. */
export class Replica {
  readonly pod: string;
  readonly driver: Driver;
  readonly #sidecars: Sidecars;

  private constructor(pod: string, driver: Driver, sidecars: Sidecars) {
    this.pod = pod;
    this.driver = driver;
    this.#sidecars = sidecars;
  }

  /** Prepares one; nothing runs yet. */
  static async prepare(
    location: DriverPlace & Omit<SidecarPlace, "socket" | "pod">,
    pod: string,
  ): Promise<Replica> {
    const driver = await makeController(location, location.kubeconfig, pod);
    return new Replica(pod, driver, new Sidecars({ ...location, socket: driver.socket, pod }));
  }

  /** Starts all of it. */
  async start(signal: AbortSignal): Promise<void> {
    await this.driver.start(signal);
    await this.#sidecars.start(signal);
  }

  /** How often its sidecars have ended by themselves, and were started again. */
  get sidecarRestarts(): number {
    return this.#sidecars.restarts;
  }

  /** Sends SIGTERM to all of it at once, like a kubelet; returns the problems of the driver's end. */
  async stop(): Promise<readonly string[]> {
    const [problems] = await Promise.all([this.driver.stop(), this.#sidecars.stop()]);
    return problems;
  }
}
