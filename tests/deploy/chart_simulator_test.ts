import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { join } from "node:path";
import { readServeConfig } from "../../src/cli/config/config.ts";
import { connectSubsystem } from "../../src/nvme/host_connection.ts";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { create, gibibyte, publishRequest } from "../support/controller_calls.ts";
import { call, hostNqn } from "../support/nvme_target.ts";
import { type Part, startPart } from "../support/parts.ts";
import { noEnvironment, startClient } from "../support/stack.ts";
import { chartTest, render, rendered, textOf } from "./chart.ts";
import { configOf, isWithin } from "./judge.ts";
import { driverOf, type KubernetesObject, only, parseObjects, type Workload } from "./objects.ts";
import { makeGuideSecret, secretFolder, simulatorPod } from "./simulator_pod.ts";

const on = { simulator: { enabled: true } };

function simulatorOf(objects: readonly KubernetesObject[]): Workload {
  return only<Workload>(objects, "Deployment", "rds-csi-simulator");
}

interface Service extends KubernetesObject {
  readonly spec: {
    readonly clusterIP: string;
    readonly selector: Readonly<Record<string, string>>;
    readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
  };
}

chartTest("without being asked for, no simulated router is rendered", () => {
  assert.doesNotMatch(JSON.stringify(rendered()), /simulator/);
});

chartTest("a simulated router is refused beside a real one, and where the driver has a password", () => {
  for (
    const more of [
      { router: { address: "10.0.0.1" } },
      { config: { routers: [{ name: "a", address: "10.0.0.1", existingSecret: "a" }] } },
      { router: { secretKeys: { password: "word" } } },
    ]
  ) {
    const { success, complaint } = render({ values: { ...on, ...more } });
    assert.equal(success, false, JSON.stringify(more));
    assert.match(complaint, /simulat/);
  }
});

chartTest(
  "the driver is given the simulator's Service, which leads to the pod's own address and ports",
  () => {
    const objects = parseObjects(textOf("simulator"));
    const { metadata, spec } = only<Service>(objects, "Service", "rds-csi-simulator");
    const pod = simulatorOf(objects).spec.template;
    assert.equal(spec.clusterIP, "None");
    assert.deepEqual(pod.metadata.labels, spec.selector);
    const [container] = pod.spec.containers;
    const open = new Map(container!.ports!.map(({ name, containerPort }) => [name, containerPort]));
    for (const { port, targetPort } of spec.ports) {
      assert.equal(
        open.get(targetPort),
        port,
        "nobody translates",
      );
    }
    const config = configOf(driverOf(only<Workload>(objects, "Deployment", "rds-csi-controller")));
    const { router, settings } = config.routers[0]!;
    const host = `${metadata.name}.${metadata.namespace}.svc`;
    assert.deepEqual([router.address, router.port, settings.nvmeAddress], [host, open.get("ssh"), host]);
    assert.equal(settings.nvmePort, open.get("nvme"));
  },
);

chartTest(
  "a NetworkPolicy lets the controller reach the simulator, whose address nobody knows beforehand",
  () => {
    const objects = rendered({ values: { ...on, networkPolicy: { enabled: true } } });
    const { spec } = only<KubernetesObject & { spec: { egress: readonly object[] } }>(
      objects,
      "NetworkPolicy",
    );
    assert.deepEqual(spec.egress.at(-1), { ports: [{ port: 2222, protocol: "TCP" }] });
  },
);

chartTest("commands in the controller's pod go to the simulator", () => {
  const controller = only<Workload>(rendered({ values: on }), "Deployment", "rds-csi-controller");
  const env = new Map(driverOf(controller).env?.map(({ name, value }) => [name, value]));
  assert.deepEqual([env.get("RDS_ADDRESS"), env.get("RDS_PORT")], ["rds-csi-simulator.rds-csi.svc", "2222"]);
});

chartTest("no other Service and no other workload takes the simulator's pod for its own", () => {
  const objects = rendered({ values: on });
  const { labels } = simulatorOf(objects).spec.template.metadata;
  const takes = (selector: Readonly<Record<string, string>>) =>
    Object.entries(selector).every(([label, value]) => labels[label] === value);
  const selectors = objects.flatMap((object) => {
    const { spec } = object as unknown as {
      readonly spec?: { readonly selector?: Readonly<Record<string, unknown>> };
    };
    if (object.metadata.name === "rds-csi-simulator" || spec?.selector === undefined) return [];
    return [(spec.selector["matchLabels"] ?? spec.selector) as Readonly<Record<string, string>>];
  });
  assert(selectors.length >= 4);
  assert.deepEqual(selectors.filter(takes), []);
});

chartTest("the simulator's pod has no privilege, no token, and only what the executable may use", () => {
  const { spec } = simulatorOf(rendered({ values: on })).spec.template;
  assert.deepEqual([spec.automountServiceAccountToken, spec.serviceAccountName], [false, undefined]);
  assert.equal(spec.securityContext?.["runAsNonRoot"], true);
  assert.equal(spec.hostNetwork, undefined);
  for (const { mountPath, readOnly = false } of spec.containers[0]!.volumeMounts) {
    const folders = readOnly ? PERMISSIONS.demo.read : PERMISSIONS.demo.write;
    assert.ok(folders.some((folder) => isWithin(mountPath, folder)), mountPath);
  }
});

chartTest("each of the simulator's values reaches its pod", () => {
  const volume = { persistentVolumeClaim: { claimName: "scratch" } };
  const simulator = {
    ...on.simulator,
    volume,
    poolSize: "1T",
    extraArgs: ["--profile=xfs-pool"],
    nodeSelector: { disk: "large" },
    resources: { limits: { memory: "2Gi" } },
  };
  const router = { basePaths: ["/a/one", "/b/two", "/a/three"], user: "csi", nvmePort: 4421 };
  const { spec } = simulatorOf(
    rendered({
      values: { simulator, router, fullnameOverride: "rds-csi", imagePullSecrets: [{ name: "p" }] },
    }),
  ).spec.template;
  assert.deepEqual(spec.volumes.find(({ name }) => name === "backing"), { name: "backing", ...volume });
  assert.equal(spec.nodeSelector?.["disk"], "large");
  const [{ args, ["resources"]: resources }] = spec.containers as unknown as [
    { readonly args: readonly string[]; readonly resources: { readonly limits: unknown } },
  ];
  assert.deepEqual(resources.limits, { memory: "2Gi" });
  const given = args.filter((word) => /^--(pool|base-path|user|nvme-port|profile)=/.test(word));
  assert.deepEqual(given, [
    ...["--user=csi", "--nvme-port=4421", "--base-path=/a/one", "--base-path=/b/two", "--base-path=/a/three"],
    ...["--pool=a:1T:btrfs", "--pool=b:1T:btrfs", "--profile=xfs-pool"],
  ]);
});

chartTest("the notes of the chart say aloud that a simulated router is no place for data", () => {
  const template = Deno.readTextFileSync(new URL("../../deploy/chart/templates/NOTES.txt", import.meta.url));
  const part = template.split("{{- if .Values.simulator.enabled }}")[1]?.split("{{- end }}")[0];
  assert.match(part ?? "", /^NOT FOR DATA/m);
});

chartTest(
  "the pod's command line serves the driver: it logs in by the guide's keys, and a host reads a volume by NVMe/TCP",
  async () => {
    // An address of this machine that no other run is likely to use now.
    const podIp = `127.${[1, 2, 3].map(() => 1 + Math.floor(Math.random() * 250)).join(".")}`;
    await using parts = new AsyncDisposableStack();
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
    parts.defer(() => Deno.remove(folder, { recursive: true }));
    const secret = join(folder, "secret");
    await makeGuideSecret(secret);
    const pod = simulatorPod(podIp);
    const backing = pod.container.volumeMounts.find(({ name }) => name === "backing")!.mountPath;
    const moved = (words: readonly string[]) =>
      words.map((word) =>
        word.replace(secretFolder, secret).replace(backing, join(folder, "backing")).replace(pod.host, podIp)
      );
    // Only in a pod is the loopback interface its own.
    const router = startPart("sources", "simulator", folder, [...moved(pod.args), "--control-port=0"]);
    parts.defer(() => router.kill());
    await router.ready(async () => (await printedSoFar(router)).includes('"ready":true'));
    const { controlUrl } = JSON.parse(await router.printed()) as { readonly controlUrl: string };

    const config = readServeConfig(
      [
        ...["--mode=controller", "--endpoint=tcp://127.0.0.1:0", "--metrics-address=127.0.0.1:0"],
        ...["--cluster-id=try", "--known-node=node-1", "--unexport-grace=0s", ...moved(pod.routerFlags)],
      ],
      noEnvironment,
      (path) => Deno.readTextFileSync(path),
    );
    const { clients } = await startClient(config, parts, []);
    const volumeId = await create({ clients }, "pvc-1");
    const { publishContext } = await clients.controller.call(
      "ControllerPublishVolume",
      publishRequest(volumeId),
    );
    const { nqn = "", nvmeAddress: address = "", nvmePort } = publishContext;
    assert.equal(address, podIp);
    const hostId = "11111111-1111-4111-8111-111111111111";
    {
      const where = { address, port: Number(nvmePort), nqn, hostNqn, hostId };
      await using host = await connectSubsystem(where, call());
      assert.equal(await host.namespaceBytes(call()), gibibyte);
      assert.deepEqual(await host.read(0n, 1, call()), new Uint8Array(512));
      await clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
      await host.ended;
    }
    await clients.controller.call("DeleteVolume", { volumeId });
    assert.deepEqual(await control({ controlUrl }, "GET /violations"), []);
    // The request that the guide sends to the control port.
    const { pools } = await control<{
      readonly pools: readonly { readonly slot: string; readonly size: number }[];
    }>({ controlUrl }, "GET /state");
    assert.deepEqual(pools.map(({ slot, size }) => [slot, size]), [["storage-pool", 20 * 2 ** 30]]);
    await control({ controlUrl }, "POST /reboot", { downMs: 1 });
    assert.deepEqual(await router.stop(), []);
  },
);

/** Returns the printed output; "" before its log exists. */
async function printedSoFar(part: Part): Promise<string> {
  try {
    return await part.printed();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}
