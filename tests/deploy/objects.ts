import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

/** The fields of a Kubernetes object that these tests read from every kind. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** A container of a pod. */
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
  }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
    readonly mountPropagation?: string;
  }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly [probe: `${string}Probe`]: {
    readonly httpGet: { readonly path: string; readonly port: string; readonly host?: string };
  };
}

/** The specification of a pod. */
export interface PodSpec {
  /** Undefined means the namespace's default account, whose token is not mounted. */
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly tolerations?: readonly Readonly<Record<string, unknown>>[];
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: Readonly<Record<string, unknown>>;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly hostPath?: { readonly path: string };
    readonly secret?: Entries & { readonly secretName: string; readonly defaultMode: number };
    readonly configMap?: ConfigFiles;
    readonly projected?: {
      readonly defaultMode: number;
      readonly sources: readonly {
        readonly configMap?: ConfigFiles;
        readonly secret?: Entries & { readonly name: string };
      }[];
    };
  }[];
}

/** The entries of a ConfigMap that become files; all of them unless some are named. */
export interface ConfigFiles extends Partial<Entries> {
  readonly name: string;
}

/** The entries of a Secret that become files. */
export interface Entries {
  readonly items: readonly { readonly key: string; readonly path: string }[];
}

/** A Deployment or DaemonSet. */
export interface Workload extends KubernetesObject {
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly template: {
      readonly metadata: Pick<KubernetesObject["metadata"], "annotations"> & {
        readonly labels: Readonly<Record<string, string>>;
      };
      readonly spec: PodSpec;
    };
  };
}

/** One rule of a Role or ClusterRole. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** A RoleBinding or ClusterRoleBinding. */
export interface Binding extends KubernetesObject {
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
  readonly roleRef: { readonly kind: string; readonly name: string };
}

/** Returns the text of a file of deploy/. */
export function readDeployFile(path: string): string {
  return readProjectFile(`deploy/${path}`);
}

/** Returns the text of a file of the project. */
export function readProjectFile(path: string): string {
  return Deno.readTextFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)));
}

/**
 * Returns the objects of a stream of YAML documents, without empty documents.
 *
 * @throws {Error} when one cannot be parsed, or has two entries of one name
 */
export function parseObjects(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml).flatMap((document) => {
    if ("errors" in document && document.errors.length > 0) throw document.errors[0];
    const value = document.toJS() as KubernetesObject | null;
    return value === null ? [] : [value];
  });
}

/** Returns the object of that kind, and of that name if there are several. */
export function only<T extends KubernetesObject>(
  objects: readonly KubernetesObject[],
  kind: string,
  name?: string,
): T {
  const found = objects.filter((one) =>
    one.kind === kind && (name === undefined || one.metadata.name === name)
  );
  if (found.length !== 1) throw new Error(`there are ${found.length} of ${kind} ${name ?? ""}`);
  return found[0] as T;
}

/** Returns the driver's own container of a workload. */
export function driverOf(workload: Workload): Container {
  const container = workload.spec.template.spec.containers.find(({ name }) => name === "driver");
  if (container === undefined) throw new Error(`${workload.metadata.name} has no container "driver"`);
  return container;
}
