import assert from "node:assert/strict";
import { parseDirectoryParameters } from "../../src/volume/model/directory/parameters.ts";
import { chartTest, render, rendered, textOf } from "./chart.ts";
import { assertSound, configOf } from "./judge.ts";
import {
  type Binding,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  type Rule,
  type Workload,
} from "./objects.ts";

const directoryDriver = "rds-directory.csi.srvlab.io";

function example(): KubernetesObject[] {
  const objects = parseObjects(textOf("directories"));
  assertSound(objects);
  return objects;
}

chartTest("the chart has one CSIDriver and nothing of directories unless they are switched on", () => {
  const objects = rendered({});
  only(objects, "CSIDriver");
  assert.ok(!JSON.stringify(objects).includes("directory"));
});

chartTest("the driver of directories attaches nothing, and leaves owners alone", () => {
  const { spec } = only<KubernetesObject & { spec: object }>(example(), "CSIDriver", directoryDriver);
  assert.deepEqual(spec, {
    ...{ attachRequired: false, podInfoOnMount: true, fsGroupPolicy: "None" },
    ...{ seLinuxMount: false, storageCapacity: false, volumeLifecycleModes: ["Persistent"] },
  });
});

chartTest("the controller of directories serves its folders beside that of block volumes", () => {
  const objects = example();
  const workload = only<Workload>(objects, "Deployment", "rds-csi-directory-controller");
  const { kind, driverName, directories, routers, cluster } = configOf(driverOf(workload));
  assert.deepEqual([kind, driverName, routers], ["directory", directoryDriver, []]);
  assert.deepEqual(directories?.settings.basePaths, ["/share/k8s"]);
  assert.equal(directories?.router.address, "10.0.0.1");
  assert.equal(cluster?.leaderElection, true);
  const sidecars = workload.spec.template.spec.containers.map(({ name }) => name);
  assert.deepEqual(sidecars, ["driver", "csi-provisioner", "csi-resizer"]);
  const block = configOf(driverOf(only<Workload>(objects, "Deployment", "rds-csi-controller")));
  assert.deepEqual([block.kind, block.driverName], ["block", "rds.csi.srvlab.io"]);
});

chartTest("the node of directories has a socket, a state folder and a port of its own", () => {
  const objects = example();
  const own = only<Workload>(objects, "DaemonSet", "rds-csi-directory-node");
  const config = configOf(driverOf(own));
  const block = configOf(driverOf(only<Workload>(objects, "DaemonSet", "rds-csi-node")));
  assert.deepEqual([config.kind, config.driverName], ["directory", directoryDriver]);
  assert.equal(config.node?.stateDirectory, `/var/lib/kubelet/plugins/${directoryDriver}/state`);
  assert.equal(config.registration?.socketPath, `/var/lib/kubelet/plugins/${directoryDriver}/csi.sock`);
  assert.notEqual(config.metricsAddress?.port, block.metricsAddress?.port);
  const { spec } = own.spec.template;
  // Without the host's processes the machine id is not there, and nodes of one name in two clusters were one NFS client.
  assert.deepEqual([spec.hostNetwork, spec.hostPID, spec.automountServiceAccountToken], [true, true, false]);
  assert.deepEqual(spec.volumes.filter(({ secret }) => secret !== undefined), []);
});

chartTest("every example class of directories has parameters that the controller takes", () => {
  const objects = example() as (KubernetesObject & {
    provisioner?: string;
    parameters?: Readonly<Record<string, string>>;
  })[];
  const classes = objects.filter(({ provisioner }) => provisioner === directoryDriver);
  assert.deepEqual(classes.map(({ metadata }) => metadata.name), ["rds-directory", "rds-media"]);
  for (const { parameters = {} } of classes) {
    parseDirectoryParameters(parameters, {
      basePaths: ["/share/k8s"],
      addresses: [{ host: "nas", port: 2049 }],
    });
  }
});

chartTest("the controller of directories may neither attach nor snapshot", () => {
  const objects = example();
  const { rules } = only<KubernetesObject & { rules: readonly Rule[] }>(
    objects,
    "ClusterRole",
    "rds-csi-directory-controller",
  );
  const resources = rules.flatMap((rule) => rule.resources);
  assert.ok(!resources.some((one) => one.startsWith("volumeattachments") || one === "csidrivers"));
  const writing = rules.filter(({ verbs }) => verbs.some((verb) => !["get", "list", "watch"].includes(verb)));
  assert.ok(!writing.some((rule) => rule.resources.includes("volumesnapshotcontents")));
  const { subjects } = only<Binding>(objects, "ClusterRoleBinding", "rds-csi-directory-controller");
  assert.deepEqual(subjects.map(({ name }) => name), ["rds-csi-directory-controller"]);
});

chartTest("the chart says which values directories lack, and takes a router of their own", () => {
  const values = { router: { address: "10.0.0.1" }, directory: { enabled: true } };
  assert.match(render({ values }).complaint, /directory\.basePaths/);
  const basePaths = ["/share"];
  const tooLong = { ...values, directory: { enabled: true, basePaths: ["/share/".padEnd(21, "x")] } };
  assert.equal(render({ values: tooLong }).success, false);
  const config = {
    routers: [{ name: "a", default: true, address: "10.0.0.1", basePaths: ["/p/a"], existingSecret: "a" }],
  };
  const several = { config, directory: { enabled: true, basePaths } };
  assert.match(render({ values: several }).complaint, /directory\.router\.address/);
  const router = { address: "10.0.0.9", port: 2222, user: "nfs", existingSecret: "nfs-secret" };
  const objects = rendered({ values: { config, directory: { enabled: true, basePaths, router } } });
  const workload = only<Workload>(objects, "Deployment", "rds-csi-directory-controller");
  const { directories } = configOf(driverOf(workload));
  assert.deepEqual([directories?.router.address, directories?.router.port, directories?.router.user], [
    "10.0.0.9",
    2222,
    "nfs",
  ]);
  const { secret } = workload.spec.template.spec.volumes.find(({ name }) => name === "credentials")!;
  assert.equal(secret?.secretName, "nfs-secret");
});

chartTest(
  "the chart refuses one name for both drivers: they would share a socket, a state folder and a Lease",
  () => {
    const directory = { enabled: true, basePaths: ["/share"], driverName: "nas.example.net" };
    const values = { router: { address: "10.0.0.1" }, driverName: "nas.example.net", directory };
    assert.match(render({ values }).complaint, /directory\.driverName/);
  },
);

chartTest("the policy for the network holds for the controllers of directories too", () => {
  const values = {
    router: { address: "10.0.0.1" },
    networkPolicy: { enabled: true },
    directory: { enabled: true, basePaths: ["/share"], router: { address: "10.0.0.9" } },
  };
  const policy = JSON.stringify(only(rendered({ values }), "NetworkPolicy"));
  assert.ok(policy.includes("directory-controller"));
  assert.ok(policy.includes("10.0.0.9/32"));
});
