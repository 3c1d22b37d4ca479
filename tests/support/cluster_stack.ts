import { FakeKubeApi } from "../fakes/kube_api.ts";
import { testDriver } from "../fakes/kube_client.ts";
import { type Stack, type StackOptions, startStack } from "./stack.ts";

/** A stack whose controller uses a cluster with a fake API server. */
export interface ClusterStack extends AsyncDisposable {
  readonly stack: Stack;
  readonly api: FakeKubeApi;
}

/** Options of {@linkcode startClusterStack}. */
export interface ClusterStackOptions extends StackOptions {
  /** Prepares the cluster before the controller starts. */
  readonly prepare?: (api: FakeKubeApi) => void;
}

/** Starts both; three nodes are registered, and the namespace kube-system exists. */
export async function startClusterStack(options: ClusterStackOptions = {}): Promise<ClusterStack> {
  const api = new FakeKubeApi();
  api.put("/api/v1/namespaces", { metadata: { name: "kube-system", uid: "a-cluster's-uid" } });
  for (const name of ["worker-1", "worker-2", "worker-3"]) {
    const spec = { drivers: [{ name: testDriver, nodeID: name }] };
    api.put("/apis/storage.k8s.io/v1/csinodes", { metadata: { name }, spec });
  }
  options.prepare?.(api);
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  await Deno.writeTextFile(kubeconfig, api.kubeconfig());
  try {
    const flags = ["--kubeconfig", kubeconfig, ...options.flags ?? []];
    const stack = await startStack({ ...options, flags });
    return {
      stack,
      api,
      async [Symbol.asyncDispose]() {
        await stack[Symbol.asyncDispose]();
        await api[Symbol.asyncDispose]();
        await Deno.remove(kubeconfig);
      },
    };
  } catch (error) {
    await api[Symbol.asyncDispose]();
    await Deno.remove(kubeconfig);
    throw error;
  }
}

/** Lends the flags with which a command finds the fake API server. */
export async function withKubeconfig(
  api: FakeKubeApi,
  work: (flags: readonly string[]) => Promise<void>,
): Promise<void> {
  const kubeconfig = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  try {
    await Deno.writeTextFile(kubeconfig, api.kubeconfig());
    await work(["--kubeconfig", kubeconfig]);
  } finally {
    await Deno.remove(kubeconfig);
  }
}
