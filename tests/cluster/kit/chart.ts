import { join } from "node:path";
import { renderChart } from "../../../tools/deploy/helm.ts";
import {
  type Container,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  type PodSpec,
  readDeployFile,
  type Workload,
} from "../../deploy/objects.ts";
import { type Router, routerUser } from "./router.ts";

/** Arguments that the rig passes through values of the chart, besides those for every suite. */
export interface ChartOptions {
  readonly controllerArgs: readonly string[];
  /** The chart's value `clusterId`; empty by default. */
  readonly clusterId?: string;
  /** Routers of the file of `--config`, each of them a place; the room of each is published. */
  readonly places?: readonly PlaceValues[];
  /** Where the driver finds its router, in the place of a name that only a cluster's name service knows. */
  readonly routerAddress?: string;
}

/** A router that only nodes of its place reach, as an entry of the value `config.routers`. */
export interface PlaceValues {
  /** Of the router, of its place, and of the group of nodes there. */
  readonly name: string;
  readonly port: number;
  readonly hostKeys: readonly string[];
  readonly passwordFile: string;
}

/** The label by which nodes of a place are known. */
export const placeLabel = "rds-csi.test/place";

/** For every suite: loop devices are not cut off by a withdrawal, so that nobody has to wait for that. */
const controllerArgs = ["--unexport-grace=0s"];

/** The objects of deploy/ rendered for the rig's router, with the contents of their pods. */
export class Chart {
  /** In the order in which they can be applied. */
  readonly objects: readonly KubernetesObject[];
  /** The arguments that were added through values. */
  readonly options: ChartOptions;

  private constructor(objects: readonly KubernetesObject[], options: ChartOptions) {
    this.objects = objects;
    this.options = options;
  }

  /** Renders it, with its values in a file of `folder`. */
  static async render(
    helm: string,
    folder: string,
    router: Router,
    more: Partial<ChartOptions>,
  ): Promise<Chart> {
    const options = {
      controllerArgs: more.places ? [] : controllerArgs,
      ...(more.clusterId === undefined ? {} : { clusterId: more.clusterId }),
      ...(more.places === undefined ? {} : { places: more.places }),
    };
    const file = join(folder, "values.json");
    await Deno.writeTextFile(file, JSON.stringify(valuesFor(router, options)));
    const { success, yaml, complaint } = renderChart(helm, [file]);
    if (!success) throw new Error(`Cannot render the chart: ${complaint}`);
    const namespace = parseObjects(readDeployFile("manifests/namespace.yaml"));
    return new Chart([...namespace, ...parseObjects(yaml)], options);
  }

  /**
   * The objects of an installed chart, including its namespace; `options` are the arguments that its values have added.
   */
  static of(objects: readonly KubernetesObject[], options: Partial<ChartOptions> = {}): Chart {
    return new Chart(objects, { controllerArgs: [], ...options });
  }

  /** The namespace of the chart. */
  get namespace(): string {
    return only(this.objects, "Namespace").metadata.name;
  }

  /** The service account of the driver's controller and of its sidecars. */
  get controllerAccount(): string {
    const { serviceAccountName } = this.#pod("Deployment");
    if (serviceAccountName === undefined) throw new Error("the controller has no account of its own");
    return serviceAccountName;
  }

  /** The driver as controller. */
  get controller(): Container {
    return driverOf(this.#workload("Deployment"));
  }

  /** The driver as node, at a place where there are several. */
  nodeAt(place: string | undefined): Container {
    return driverOf(this.#workload("DaemonSet", place));
  }

  /** The file of `--config`; undefined where flags name the router. */
  get config(): string | undefined {
    const found = this.objects.find(({ kind, metadata }) =>
      kind === "ConfigMap" && metadata.name.endsWith("-config")
    );
    return (found as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data?.["config.yaml"];
  }

  /** The given routers' profiles, by the names of their files; may be empty. */
  get profiles(): Readonly<Record<string, string>> {
    const found = this.objects.find(({ kind, metadata }) =>
      kind === "ConfigMap" && metadata.name.endsWith("-router-profiles")
    );
    return (found as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data ?? {};
  }

  /** The containers beside the controller. */
  get sidecars(): readonly Container[] {
    return this.#pod("Deployment").containers.filter(({ name }) => name !== this.controller.name);
  }

  /** The kubelet's folder in the rendered objects. */
  get kubeletPath(): string {
    const volume = this.#pod("DaemonSet", this.options.places?.[0]?.name).volumes.find(({ name }) =>
      name === "kubelet"
    );
    if (volume?.hostPath === undefined) {
      throw new Error("the DaemonSet has no volume of the kubelet's folder");
    }
    return volume.hostPath.path;
  }

  #pod(kind: "Deployment" | "DaemonSet", place?: string): PodSpec {
    return this.#workload(kind, place).spec.template.spec;
  }

  /** The one of that kind in which the driver runs; beside it there may be a simulated router. */
  #workload(kind: "Deployment" | "DaemonSet", place?: string): Workload {
    return only<Workload>(
      this.objects.filter((object) =>
        object.kind === kind && (place === undefined || object.metadata.name.endsWith(`-${place}`)) &&
        (object as Workload).spec.template.spec.containers.some(isDriver)
      ),
      kind,
    );
  }
}

function isDriver({ name }: Container): boolean {
  return name === "driver";
}

function valuesFor(
  router: Router,
  { controllerArgs, clusterId = "", places }: ChartOptions,
): object {
  // Deployment and DaemonSet are real objects, but no node is to look for their images.
  const nodeSelector = { "rds-csi.test/runs-pods-of-the-chart": "true" };
  return {
    clusterId,
    router: {
      address: places === undefined ? "127.0.0.1" : "",
      port: router.sshPort,
      user: routerUser,
      secretKeys: { password: "rds-password" },
      nvmeAddress: places === undefined ? "127.0.0.1" : "",
    },
    controller: { extraArgs: controllerArgs, nodeSelector },
    ...places === undefined ? {} : { storageCapacity: true, config: { routers: places.map(routerOf) } },
    node: { nodeSelector, ...places === undefined ? {} : { groups: places.map(groupOf) } },
    sidecars: { logLevel: 3 },
    volumeSnapshotClasses: [{ name: "rds" }],
  };
}

function routerOf({ name, ...more }: PlaceValues): object {
  const address = { address: "127.0.0.1", nvmeAddress: "127.0.0.1", user: routerUser };
  return { name, ...address, ...more, unexportGrace: "0s", topology: { [placeLabel]: name } };
}

function groupOf({ name }: PlaceValues): object {
  const place = { [placeLabel]: name };
  return { name, nodeSelector: place, topology: place };
}
