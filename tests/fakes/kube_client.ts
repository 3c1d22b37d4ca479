import { KubernetesClient } from "../../src/kubernetes/client.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { FakeClock } from "./clock.ts";
import { FakeKubeApi, type KubeObject } from "./kube_api.ts";

/** The driver of the tests' objects. */
export const testDriver = "rds.csi.srvlab.io";

/** A fake API server and a client of it, which end together. */
export interface KubePair extends AsyncDisposable {
  readonly api: FakeKubeApi;
  readonly client: KubernetesClient;
}

/** Starts both; the client's time limits go by `clock`. */
export async function startKube(clock: Clock = systemClock): Promise<KubePair> {
  const api = new FakeKubeApi();
  const file = await Deno.makeTempFile({ prefix: "rds-csi-kube-" });
  await Deno.writeTextFile(file, api.kubeconfig());
  const client = await KubernetesClient.open({ kubeconfig: file }, clock);
  await Deno.remove(file);
  return {
    api,
    client,
    async [Symbol.asyncDispose]() {
      client.close();
      await api[Symbol.asyncDispose]();
    },
  };
}

/** A PersistentVolume of this driver, bound to a claim of the same name in `apps`. */
export function aPersistentVolume(
  volumeId: string,
  over: { readonly annotations?: Record<string, string>; readonly attributes?: Record<string, string> } = {},
): KubeObject {
  const name = `pv-${volumeId}`;
  return {
    metadata: { name, annotations: { "pv.kubernetes.io/provisioned-by": testDriver, ...over.annotations } },
    spec: {
      csi: { driver: testDriver, volumeHandle: volumeId, volumeAttributes: over.attributes ?? {} },
      claimRef: { namespace: "apps", name: `claim-${volumeId}`, uid: `claim-uid-${volumeId}` },
    },
  };
}

/** A VolumeAttachment of a volume of {@linkcode aPersistentVolume}. */
export function aVolumeAttachment(
  volumeId: string,
  nodeName: string,
  over: {
    readonly deleting?: boolean;
    readonly publishContext?: Record<string, string>;
    readonly attached?: boolean;
  } = {},
): KubeObject {
  return {
    metadata: {
      name: `csi-${volumeId}-${nodeName}`,
      ...(over.deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: { attacher: testDriver, nodeName, source: { persistentVolumeName: `pv-${volumeId}` } },
    status: { attached: over.attached ?? true, attachmentMetadata: over.publishContext ?? {} },
  };
}

/** Advances the fake time beside real events, until a condition holds. */
export async function until(
  clock: FakeClock,
  isSo: () => boolean,
  { stepMs = 100, limitMs = 10 * 60_000 }: { readonly stepMs?: number; readonly limitMs?: number } = {},
): Promise<void> {
  for (let passedMs = 0; !isSo(); passedMs += stepMs) {
    if (passedMs >= limitMs) throw new Error(`it is not so after ${limitMs} ms of the false clock`);
    await clock.advance(stepMs);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
