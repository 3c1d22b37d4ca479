// What the chart refuses, in words that help, and what it takes: both ways of each rule.
import assert from "node:assert/strict";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { directoryParameterHelp } from "../../src/volume/model/directory/parameters.ts";
import { parameterNames } from "../../src/volume/model/parameters.ts";
import { kubeletFolders } from "../../src/cli/serve/privileges.ts";
import { findHelm } from "../../tools/deploy/helm.ts";
import { chartTest, render, rendered } from "./chart.ts";
import { driverOf, only, readDeployFile, type Workload } from "./objects.ts";
import { readDoctorHalves } from "../../src/cli/doctor/options.ts";

const address = { address: "10.0.0.1" };
const profile = formatProfile({ name: "r", version: "7.24", poolFilesystem: "btrfs", answers: {} });
const classes = (...all: readonly object[]) => ({ storageClasses: all });
const routers = (own: object) => ({
  config: { routers: [{ name: "a", address: "10.0.0.1", existingSecret: "s", ...own }] },
});
const directory = (own: object) => ({ directory: { enabled: true, basePaths: ["/share/k8s"], ...own } });

/** Values beside `router.address`, and what is said of them. */
const refused: readonly (readonly [values: object, words: RegExp])[] = [
  [{ router: {} }, /router\.address is required/],
  [{ router: { address: "10.0.0.1:22" } }, /router\.address "10\.0\.0\.1:22" has a port/],
  [{ router: { address: "router.lan:22" } }, /router\.address .* has a port/],
  [{ router: { address: "[fd00::1]" } }, /router\.address .* has a port or brackets/],
  [{ router: { address: "ssh://10.0.0.1" } }, /router\.address .* has a scheme/],
  [{ router: { address: "10.0.0.1 " } }, /router\.address has a blank/],
  [{ router: { address: "admin@10.0.0.1" } }, /router\.address .* is neither a name nor an address/],
  [{ router: { ...address, nvmeAddress: "10.0.0.1, 10.0.0.2" } }, /router\.nvmeAddress has a blank/],
  [{ router: { ...address, nvmeAddress: "10.0.0.1:4420" } }, /router\.nvmeAddress .* has a port/],
  [
    { router: { ...address, profile: "profile.json" } },
    /router\.profile is no profile that `rds-csi doctor --probe` wrote/,
  ],
  [{ router: { ...address, profile: "{}" } }, /router\.profile is no profile/],
  [{ router: { ...address, profile: '{"format":"other/1"}' } }, /router\.profile is no profile/],
  [{ router: {}, ...routers({ address: "10.0.0.1:22" }) }, /config\.routers\[0\]\.address .* has a port/],
  [
    { router: {}, ...routers({ nvmeAddress: "10.0.0.1 ,10.0.0.2" }) },
    /config\.routers\[0\]\.nvmeAddress has a blank/,
  ],
  [{ router: {}, ...routers({ profile: "x" }) }, /config\.routers\[0\]\.profile is no profile/],
  [routers({}), /router\.address has to be empty because config\.routers lists the routers/],
  [directory({ router: { address: "nfs://10.0.0.1" } }), /directory\.router\.address .* has a scheme/],
  [{ image: { repository: "example.net/rds-csi:1.0" } }, /image\.repository .* has a tag or a digest/],
  [{ image: { repository: "example.net/rds-csi@sha256:00" } }, /image\.repository .* has a tag or a digest/],
  [classes({ name: "a" }, { name: "a" }), /two StorageClasses are called a/],
  [
    classes({ name: "a", default: true }, { name: "b", default: true }),
    /only one StorageClass can be the default: a, b/,
  ],
  [
    {
      ...directory({ storageClasses: [{ name: "b", default: true }] }),
      ...classes({ name: "a", default: true }),
    },
    /only one StorageClass can be the default: a, b/,
  ],
  [
    { ...directory({ storageClasses: [{ name: "a" }] }), ...classes({ name: "a" }) },
    /two StorageClasses are called a/,
  ],
  [{ volumeSnapshotClasses: [{ name: "a" }, { name: "a" }] }, /two VolumeSnapshotClasses are called a/],
  [
    { volumeSnapshotClasses: [{ name: "a", default: true }, { name: "b", default: true }] },
    /only one VolumeSnapshotClass can be the default/,
  ],
  [
    classes({ name: "a", parameters: { volumepath: "/x" } }),
    /the StorageClass a of storageClasses has the unknown parameter volumepath; known are /,
  ],
  [
    directory({ storageClasses: [{ name: "a", parameters: { volumePath: "/x" } }] }),
    /of directory\.storageClasses has the unknown parameter volumePath/,
  ],
  [
    classes({ name: "a", parameters: { encrypted: "true" } }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  [
    classes({ name: "a", parameters: { encrypted: true } }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  [{ node: { fstrimInterval: "30s" } }, /node\.fstrimInterval "30s" is below the minimum: use at least 1m/],
  [{ node: { fstrimInterval: "59s" } }, /below the minimum/],
  [directory({ metricsPort: 9809 }), /directory\.metricsPort is 9809, as metricsPort is/],
  [
    { node: { sidecars: { livenessProbe: { enabled: true, port: 9809 } } } },
    /livenessProbe\.port is 9809, as metricsPort is/,
  ],
  [{ node: { statusAddress: ":9809" } }, /node\.statusAddress is 9809, as metricsPort is/],
  [{ node: { fstrimInterval: "1x" } }, /fstrimInterval/],
  [
    { kubeletPath: "/data/kubelet" },
    /kubeletPath "\/data\/kubelet" is a folder that the executable may not use/,
  ],
];

const accepted: readonly object[] = [
  { router: { address: "router.lan" } },
  { router: { address: "fd00::1" } },
  { router: { ...address, nvmeAddress: "10.0.0.1,fd00::2,router-2.lan" } },
  { router: { ...address, profile } },
  { router: {}, ...routers({ profile, nvmeAddress: "10.1.0.1" }) },
  directory({ router: { address: "10.0.0.2" }, metricsPort: 9812 }),
  { image: { repository: "registry.example.net:5000/storage/rds-csi", tag: "1.0" } },
  classes({ name: "a", default: true }, { name: "b" }),
  classes({ name: "a", parameters: { volumePath: "/a/b", "csi.storage.k8s.io/fstype": "xfs" } }),
  classes({ name: "a", encryptionSecret: { name: "s", namespace: "n" } }),
  classes({ name: "a", parameters: { encrypted: "true", "csi.storage.k8s.io/node-stage-secret-name": "s" } }),
  classes({ name: "a", parameters: { encrypted: "false" } }),
  { node: { fstrimInterval: "1m" } },
  { node: { fstrimInterval: "1h30m" } },
  { node: { statusAddress: "127.0.0.1:9809", metricsAddress: "10.0.0.7" } },
  { node: { fstrimInterval: "168h" } },
  { metricsPort: 9811 },
  { kubeletPath: "/data/kubelet", allowFolders: ["/data/kubelet"] },
  ...kubeletFolders.map((kubeletPath) => ({ kubeletPath })),
];

const withAddress = (values: object) => ({ router: address, ...values });

for (const [values, words] of refused) {
  chartTest(`the chart refuses ${JSON.stringify(values).slice(0, 90)} in words that help`, () => {
    const { success, complaint } = render({ values: withAddress(values) });
    assert.equal(success, false);
    assert.match(complaint, words);
  });
}

for (const values of accepted) {
  chartTest(`the chart takes ${JSON.stringify(values).slice(0, 90)}`, () => {
    const { success, complaint } = render({ values: withAddress(values) });
    assert.equal(success, true, complaint);
  });
}

chartTest("the chart says everything that is wrong at once", () => {
  const values = { router: { address: "a:1" }, kubeletPath: "/k", node: { fstrimInterval: "1s" } };
  const { complaint } = render({ values });
  for (const words of [/has a port/, /kubeletPath/, /fstrimInterval/]) assert.match(complaint, words);
});

Deno.test("the chart knows every parameter of a StorageClass that the driver does, and each kubelet folder", () => {
  const text = readDeployFile("chart/templates/_validate.tpl");
  const listed = (name: string) =>
    [...new RegExp(`\\$${name} := (?:concat \\()?\\(?list ([^)}]*)`).exec(text)![1]!.matchAll(/"([^"]*)"/g)]
      .map(([, one]) => one!).toSorted();
  assert.deepEqual(listed("own"), parameterNames.toSorted());
  assert.deepEqual(listed("ofDirectories"), Object.keys(directoryParameterHelp).toSorted());
  assert.deepEqual(listed("folders"), kubeletFolders.toSorted());
});

chartTest("helm lint passes for the untouched chart, whose address only its user knows", () => {
  const { success, stdout, stderr } = new Deno.Command(findHelm()!, {
    args: ["lint", "deploy/chart"],
    stdin: "null",
  })
    .outputSync();
  const text = new TextDecoder();
  assert.ok(success, text.decode(stdout) + text.decode(stderr));
});

chartTest("snapshots need nothing to be switched off in a cluster that does not know them", () => {
  const withAndWithout = [true, false].map((knowsSnapshots) => {
    const objects = rendered({ knowsSnapshots });
    return [
      objects.some(({ kind }) => kind === "VolumeSnapshotClass"),
      JSON.stringify(objects).includes("csi-snapshotter"),
    ];
  });
  assert.deepEqual(withAndWithout, [[true, true], [false, false]]);
  const off = rendered({ sets: ["sidecars.snapshotter.enabled=false"] });
  assert.equal(off.some(({ kind }) => kind === "VolumeSnapshotClass"), false);
});

chartTest("the probe needs nothing but --probe in the controller's pod", () => {
  const { env = [] } = driverOf(only<Workload>(rendered(), "Deployment"));
  const variables = (name: string) => env.find((one) => one.name === name)?.value;
  const { router, node } = readDoctorHalves(["--probe"], variables, { readText: () => undefined });
  assert.deepEqual([router?.probe, router?.basePaths, node], [true, ["/storage-pool/metal-csi"], undefined]);
});
