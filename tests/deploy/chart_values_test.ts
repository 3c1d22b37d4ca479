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

const encrypted = (own: object) => classes({ name: "a", parameters: { encrypted: "true", ...own } });
const secretKey = "csi.storage.k8s.io/node-stage-secret-";
const twoRouters = (first: object, second: object) => ({
  router: {},
  config: {
    routers: [first, second].map((own, at) => ({
      name: `r${at}`,
      address: "10.0.0.1",
      basePaths: [`/pool/${at}`],
      existingSecret: "s",
      ...own,
    })),
  },
});

/** What no address of a router can be, with the words for it. */
const noAddress: readonly (readonly [address: string, words: string])[] = [
  ["10.0.0.1/24", "is neither a name nor an address"],
  ["10.0.0.256", "is neither a name nor an address"],
  ["10.0.0", "is neither a name nor an address"],
  ["router..lan", "is neither a name nor an address"],
  ["my_router", "is neither a name nor an address"],
  ["-router", "is neither a name nor an address"],
  [":::", "is neither a name nor an address"],
  ["fe80::1%eth0", "is neither a name nor an address"],
  ["[fd00::1]:22", "has a port or brackets"],
  ["10.0.0.1\t", "has a blank"],
  [" 10.0.0.1", "has a blank"],
  ["tcp://10.0.0.1", "has a scheme"],
  ["10.0.0.1,", "is neither a name nor an address"],
  [",10.0.0.1", "is neither a name nor an address"],
];

/** Values beside `router.address`, and what is said of them. */
const refused: readonly (readonly [values: object, words: RegExp])[] = [
  [{ router: {} }, /router\.address is required/],
  ...noAddress.flatMap(([given, words]) => [
    [{ router: { address: given } }, new RegExp(`router\\.address .*${words}`)] as const,
    [{ router: { ...address, nvmeAddress: given } }, new RegExp(`router\\.nvmeAddress .*${words}`)] as const,
  ]),
  [{ router: { address: "10.0.0.1,10.0.0.2" } }, /router\.address .* names several hosts/],
  [{ router: { ...address, nvmeAddress: "10.0.0.1,10.0.0.1" } }, /router\.nvmeAddress .* names a host twice/],
  [{ router: { ...address, nvmeAddress: "[fd00::1]" } }, /router\.nvmeAddress .* has a port or brackets/],
  [{ router: { ...address, nvmeAddress: ["10.0.0.1"] } }, /nvmeAddress': got array, want string/],
  [directory({ router: { address: "10.0.0.1:22" } }), /directory\.router\.address .* has a port/],
  [
    classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1, 10.0.0.2" } }),
    /the parameter nvmeAddress of the StorageClass a has a blank/,
  ],
  [
    classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1:4420" } }),
    /the parameter nvmeAddress of the StorageClass a .* has a port/,
  ],
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
  ...["[]", "null", " ", "/tmp/profile.json", profile.slice(0, -2)].map((text) =>
    [{ router: { ...address, profile: text } }, /router\.profile is no profile/] as const
  ),
  [{ router: { ...address, profile: { format: "x" } } }, /profile': got object, want string/],
  [{ router: { ...address, profile: '{"format":"other/1"}' } }, /router\.profile is no profile/],
  [{ router: {}, ...routers({ address: "10.0.0.1:22" }) }, /config\.routers\[0\]\.address .* has a port/],
  [
    { router: {}, ...routers({ nvmeAddress: "10.0.0.1 ,10.0.0.2" }) },
    /config\.routers\[0\]\.nvmeAddress has a blank/,
  ],
  [{ router: {}, ...routers({ profile: "x" }) }, /config\.routers\[0\]\.profile is no profile/],
  [routers({}), /router\.address has to be empty because config\.routers lists the routers/],
  [{ ...routers({}), router: { nvmeAddress: "10.0.0.1" } }, /router\.nvmeAddress has to be empty because/],
  [{ ...routers({}), router: { profile } }, /router\.profile has to be empty because/],
  [twoRouters({ name: "a" }, { name: "a" }), /config\.routers has two routers of one name/],
  [
    twoRouters({ default: true }, { default: true }),
    /only one router of config\.routers can be the default: r0, r1/,
  ],
  [directory({ router: { address: "nfs://10.0.0.1" } }), /directory\.router\.address .* has a scheme/],
  [{ image: { repository: "example.net/rds-csi:1.0" } }, /image\.repository .* has a tag or a digest/],
  [{ image: { repository: "example.net/rds-csi@sha256:00" } }, /image\.repository .* has a tag or a digest/],
  [{ image: { repository: "rds-csi:latest" } }, /image\.repository .* has a tag or a digest/],
  [{ image: { repository: "https://example.net/rds-csi" } }, /image\.repository .* has a scheme/],
  [{ image: { repository: "docker://example.net/rds-csi" } }, /image\.repository .* has a scheme/],
  ...["example.net/rds csi", "example.net/rds-csi/", "/rds-csi", "example.net/RDS"].map((repository) =>
    [{ image: { repository } }, /image\.repository .* is no name of a repository/] as const
  ),
  ...[":1.0", "1.0@sha256:00", "1 0", "sha256:00"].map((tag) =>
    [{ image: { tag } }, /image\/tag': '.*' does not match/] as const
  ),
  [{ image: { tag: 1.5 } }, /image\/tag': got number, want string/],
  [{ image: { digest: "00" } }, /image\/digest': '00' does not match/],
  [{ image: { registry: "https://example.net" } }, /image\.registry .* has a scheme/],
  [{ global: { imageRegistry: "https://example.net" } }, /global\.imageRegistry .* has a scheme/],
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
  ...["True", "yes", "1"].map((text) =>
    [encrypted({ encrypted: text }), /the parameter encrypted: .*, which can be true or false/] as const
  ),
  [encrypted({ [`${secretKey}name`]: "s" }), /the StorageClass a is encrypted and has no Secret/],
  [
    encrypted({ [`${secretKey}name`]: "", [`${secretKey}namespace`]: "n" }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  [classes({ name: "a", encryptionSecret: { name: "s" } }), /missing property 'namespace'/],
  [classes({ name: "a", encryptionSecret: { namespace: "n" } }), /missing property 'name'/],
  [
    {
      ...classes({
        name: "a",
        encryptionSecret: { name: "s", namespace: "n" },
        parameters: { encrypted: "false" },
      }),
    },
    /the StorageClass a has an encryptionSecret, which sets the parameter encrypted/,
  ],
  [classes({ name: "a", parameters: { VolumePath: "/x" } }), /unknown parameter VolumePath/],
  [
    classes({ name: "a", parameters: { "csi.storage.k8s.io/fstyp": "xfs" } }),
    /unknown parameter csi\.storage/,
  ],
  [classes({ name: "a", fsType: "btrfs" }), /fsType': value must be one of/],
  [{ controller: { healthInterval: "59s" } }, /controller\.healthInterval "59s" is below the minimum/],
  [{ controller: { healthInterval: "1h1s" } }, /controller\.healthInterval "1h1s" is above the maximum/],
  [{ controller: { healthInterval: "" } }, /healthInterval/],
  [{ node: { fstrimInterval: "2d" } }, /fstrimInterval/],
  [{ node: { fstrimInterval: "30s" } }, /node\.fstrimInterval "30s" is below the minimum: use at least 1m/],
  [{ node: { fstrimInterval: "59s" } }, /below the minimum/],
  [directory({ metricsPort: 9809 }), /directory\.metricsPort is 9809, as metricsPort is/],
  [
    { node: { sidecars: { livenessProbe: { enabled: true, port: 9809 } } } },
    /livenessProbe\.port is 9809, as metricsPort is/,
  ],
  [{ node: { statusAddress: ":9809" } }, /node\.statusAddress is 9809, as metricsPort is/],
  [{ controller: { statusAddress: ":9809" } }, /controller\.statusAddress .* has the port of metricsPort/],
  [
    { controller: { statusAddress: "127.0.0.1:9809" } },
    /controller\.statusAddress .* has the port of metricsPort/,
  ],
  [
    { ...directory({}), node: { statusAddress: ":9811" } },
    /node\.statusAddress is 9811, as directory\.metricsPort is/,
  ],
  [
    { ...directory({ metricsPort: 9808 }), node: { sidecars: { livenessProbe: { enabled: true } } } },
    /livenessProbe\.port is 9808, as directory\.metricsPort is/,
  ],
  [{ node: { statusAddress: ":0" } }, /statusAddress/],
  [{ node: { statusAddress: ":65536" } }, /statusAddress/],
  [{ metricsPort: 0 }, /metricsPort/],
  [{ node: { fstrimInterval: "1x" } }, /fstrimInterval/],
  ...["/var/lib/kubelet/plugins", "/data/../var/lib/kubelet", "/var/lib/rancher/k3s/agent/kubelet"].map((
    folder,
  ) => [{ kubeletPath: folder }, /is a folder that the executable may not use/] as const),
  [{ kubeletPath: "/data/../etc", allowFolders: ["/data"] }, /is a folder that the executable may not use/],
  [{ kubeletPath: "/database", allowFolders: ["/data"] }, /is a folder that the executable may not use/],
  ...["/var/lib/kubelet/", "var/lib/kubelet", "/"].map((kubeletPath) =>
    [{ kubeletPath }, /kubeletPath/] as const
  ),
  [{ router: { ...address, basePaths: ["/a/../b"] } }, /basePaths\/0': '.*' does not match/],
  [{ router: { ...address, basePaths: ["/a/b", "/a/b"] } }, /basePaths': items .* equal/],
  [
    { kubeletPath: "/data/kubelet" },
    /kubeletPath "\/data\/kubelet" is a folder that the executable may not use/,
  ],
];

const accepted: readonly object[] = [
  ...["10.0.0.255", "0.router.lan", "r1", "router-1", "1a", "::1", "fd00::ffff:10.0.0.1"].flatMap((host) => [
    { router: { address: host } },
    { router: { ...address, nvmeAddress: host } },
  ]),
  directory({ storageClasses: [{ name: "b", parameters: { addresses: "10.0.0.1,10.0.1.3:2049" } }] }),
  twoRouters({ default: true }, {}),
  twoRouters({}, { nvmeAddress: "10.1.0.1,10.2.0.1" }),
  classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1,10.0.0.2", nvmePort: 4420 } }),
  ...["rds-csi", "localhost:5000/rds-csi", "ghcr.io/a_b/rds.csi"].map((repository) => ({
    image: { repository },
  })),
  { image: { tag: "v1.0_a-b.c", digest: `sha256:${"0".repeat(64)}`, registry: "r.example.net:5000" } },
  { global: { imageRegistry: "mirror.example.net/cache", ofAnotherChart: true } },
  { controller: { healthInterval: "0s", statusAddress: "127.0.0.1:9810" } },
  { controller: { healthInterval: "1h" } },
  { node: { fstrimInterval: "0s", sidecars: { livenessProbe: { port: 9809 } } } },
  { directory: { enabled: false, metricsPort: 9809 } },
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
  classes({
    name: "a",
    parameters: { encrypted: "true", [`${secretKey}name`]: "s", [`${secretKey}namespace`]: "n" },
  }),
  classes({ name: "a", parameters: { encrypted: "false" } }),
  { node: { fstrimInterval: "1m" } },
  { node: { fstrimInterval: "1h30m" } },
  { node: { statusAddress: "127.0.0.1:9809", metricsAddress: "10.0.0.7" } },
  { node: { fstrimInterval: "168h" } },
  { metricsPort: 9811 },
  { kubeletPath: "/data/kubelet", allowFolders: ["/data/kubelet"] },
  { kubeletPath: "/data/kubelet", allowFolders: ["/other", "/data"] },
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
