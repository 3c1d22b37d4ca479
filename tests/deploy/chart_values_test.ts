// What the chart refuses, in words that help, and what it takes: both ways of each rule.
import assert from "node:assert/strict";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { kubeletFolders } from "../../src/cli/serve/privileges.ts";
import { findHelm } from "../../tools/deploy/helm.ts";
import { chartTest, type Refusal, render, rendered, valuesTests } from "./chart.ts";
import { driverOf, only, type Workload } from "./objects.ts";
import { readDoctorHalves } from "../../src/cli/doctor/options.ts";

const address = { address: "10.0.0.1" };
const profile = formatProfile({ name: "r", version: "7.24", poolFilesystem: "btrfs", answers: {} });
const routers = (own: object) => ({
  config: { routers: [{ name: "a", default: true, address: "10.0.0.1", existingSecret: "s", ...own }] },
});
const directory = (own: object) => ({ directory: { enabled: true, basePaths: ["/share/k8s"], ...own } });

const digest = `sha256:${"0".repeat(64)}`;
const groups = (...named: readonly (readonly [name: string, rack: string])[]) => ({
  node: {
    groups: named.map(([name, rack]) => ({ name, nodeSelector: { rack }, topology: { rack } })),
  },
});
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

const everyImage = (image: string) => ({
  sidecars: { provisioner: { image }, attacher: { image }, resizer: { image }, snapshotter: { image } },
  node: { sidecars: { livenessProbe: { image } } },
  test: { image },
});
const everyImageIsWrong = new RegExp(
  ["node.sidecars.livenessProbe", "sidecars.attacher", "sidecars.provisioner", "sidecars.resizer"]
    .map((of) => `${of}\\.image ".*" has (?:to be NAME:TAG|a scheme)[^]*`).join("") + "test\\.image ",
);

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
const refused: readonly Refusal[] = [
  [{ router: {} }, /router\.address is required/],
  ...noAddress.flatMap(([given, words]) => [
    [{ router: { address: given } }, new RegExp(`router\\.address .*${words}`)] as const,
    [{ router: { ...address, nvmeAddress: given } }, new RegExp(`router\\.nvmeAddress .*${words}`)] as const,
  ]),
  [{ router: { address: "10.0.0.1,10.0.0.2" } }, /router\.address .* names several hosts/],
  [{ router: { ...address, nvmeAddress: "10.0.0.1,10.0.0.1" } }, /router\.nvmeAddress .* names a host twice/],
  [{ router: { ...address, nvmeAddress: ["10.0.0.1"] } }, /nvmeAddress': got array, want string/],
  [directory({ router: { address: "10.0.0.1:22" } }), /directory\.router\.address .* has a port/],
  [{ router: { address: "10.0.0.1:22" } }, /router\.address "10\.0\.0\.1:22" has a port/],
  [{ router: { address: "admin@10.0.0.1" } }, /router\.address .* is neither a name nor an address/],
  [{ router: { ...address, nvmeAddress: "10.0.0.1, 10.0.0.2" } }, /router\.nvmeAddress has a blank/],
  [
    { router: { ...address, profile: "profile.json" } },
    /router\.profile is no profile that `rds-csi doctor --probe` wrote/,
  ],
  ...["{}", "[]", "null", " ", profile.slice(0, -2)].map((text) =>
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
  [{ image: { repository: "https://example.net/rds-csi" } }, /image\.repository .* has a scheme/],
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
  [{ router: { ...address, secretKeys: { privateKey: "" } } }, /router\.secretKeys names no entry to log in/],
  [
    { router: { ...address, secretKeys: { privateKey: "mine", password: "word" } } },
    /router\.secretKeys has both privateKey and password/,
  ],
  [
    { router: { ...address, basePaths: ["/a", "/a/b"] } },
    /basePaths has \/a\/b, and router\.basePaths has \/a of/,
  ],
  [{ router: { ...address, basePaths: ["/a/b/c", "/d", "/a"] } }, /basePaths has \/a, and .* has \/a\/b\/c/],
  [
    twoRouters({ basePaths: ["/p"] }, { basePaths: ["/p/1"] }),
    /routers\[1\]\.basePaths has \/p\/1, and config/,
  ],
  [
    twoRouters({ basePaths: undefined }, { basePaths: ["/storage-pool/metal-csi"] }),
    /routers\[1\]\.basePaths has \/storage-pool\/metal-csi, and config\.routers\[0\]/,
  ],
  [
    directory({ basePaths: ["/storage-pool/nfs"] }),
    /directory\.basePaths has .*, on the pool of \/storage-pool/,
  ],
  [
    directory({ basePaths: ["/share/a", "/share/a/b"] }),
    /directory\.basePaths has \/share\/a\/b inside \/share\/a:/,
  ],
  [directory({ basePaths: ["/share/a", "/other/b"] }), /directory\.basePaths has folders of several shares/],
  [twoRouters({ default: true, topology: { rack: "a" } }, {}), /have different topologies/],
  [twoRouters({ topology: { rack: "a" } }, { topology: { zone: "a" } }), /have different topologies/],
  [
    { router: {}, ...routers({ topology: { "a b": "c" } }) },
    /the topology of config.routers\[0\] has "a b": "c", which is no label/,
  ],
  [
    { router: {}, ...routers({ topology: { a: "b c" } }) },
    /the topology of config.routers\[0\] has "a": "b c"/,
  ],
  [{ router: {}, ...routers({ settleTime: "61m" }) }, /routers\[0\]\.settleTime "61m" is above the maximum/],
  [{ router: {}, ...routers({ unexportGrace: "6m" }) }, /routers\[0\]\.unexportGrace .* use at most 5m/],
  [{ router: {}, ...routers({ overcommit: 0 }) }, /overcommit': minimum/],
  [{ router: {}, ...routers({ existingSecret: undefined }) }, /routers\[0\] has nothing to log in with/],
  [{ router: {}, ...routers({ existingSecret: undefined, keyFile: "/k" }) }, /routers\[0\] has no host key/],
  [{ router: {}, ...routers({ keyFile: "/k", passwordFile: "/p" }) }, /has both keyFile and passwordFile/],
  [
    { router: {}, ...routers({ secretKeys: { privateKey: "k", password: "p" } }) },
    /routers\[0\]\.secretKeys has both privateKey and password/,
  ],
  [
    { ...routers({}), router: { secretKeys: { privateKey: "" } } },
    /routers\[0\]\.secretKeys names no entry to log in with/,
  ],
  [
    { router: {}, ...routers({ default: false }) },
    /the StorageClass rds-ext4 names no router, and none of config/,
  ],
  [groups(["a", "1"], ["a", "2"]), /node\.groups has two groups of one name: a/],
  [groups(["a", "1 2"]), /the topology of the group a of node.groups has "rack": "1 2"/],
  [groups(["a", "1"], ["b", "1"]), /node\.groups has two groups with the nodeSelector of b/],
  [
    directory({ controllerArgs: ["--workers=2"] }),
    /directory\.controllerArgs has .* no flag of rds-csi serve/,
  ],
  [directory({ nodeArgs: ["--kind=block"] }), /directory\.nodeArgs has "--kind=block", which the chart sets/],
  [
    { router: {}, simulator: { enabled: true, extraArgs: ["--log-level=debug"] } },
    /is no flag of rds-csi simulator/,
  ],
  [
    { router: {}, ...routers({}), controller: { extraArgs: ["--settle-time=60s"] } },
    /"--settle-time=60s", which belongs to each router: set it in config\.routers/,
  ],
  [
    { controller: { startupTaint: "node.kubernetes.io/not-ready" } },
    /startupTaint .* is a taint of Kubernetes/,
  ],
  [{ controller: { healthInterval: "59s" } }, /controller\.healthInterval "59s" is below the minimum/],
  [{ controller: { healthInterval: "1h1s" } }, /controller\.healthInterval "1h1s" is above the maximum/],
  [{ controller: { healthInterval: "" } }, /healthInterval/],
  [{ node: { fstrimInterval: "2d" } }, /fstrimInterval/],
  [{ node: { fstrimInterval: "30s" } }, /node\.fstrimInterval "30s" is below the minimum: use at least 1m/],
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
  ...["registry.example.net:5000/a/b", "b", "b:", "docker://a/b:1", "A/b:1"].map((image) =>
    [everyImage(image), everyImageIsWrong] as const
  ),
  [everyImage("b@latest"), /image': 'b@latest' does not match/],
  ...([
    ["--setle-time=5m", 'has "--setle-time=5m", which is no flag of rds-csi serve'],
    ["--log-level debug", 'has "--log-level debug": write a flag with its value behind ='],
    ["--", 'has "--", which is no flag of rds-csi serve'],
    ["-endpoint=/x", 'has "-endpoint=/x", which the chart sets'],
  ] as const).map(([arg, words]) =>
    [
      { controller: { extraArgs: [arg] }, node: { extraArgs: [arg] } },
      new RegExp(`controller\\.extraArgs ${words}[^]*node\\.extraArgs ${words}`),
    ] as const
  ),
  [{ controller: { extraArgs: ["--settle-time", "5m"] } }, /extraArgs\/1': '5m' does not match/],
];

const accepted: readonly object[] = [
  { sidecars: { attacher: { image: "example.net:5000/a/b-c:v1.0" }, resizer: { image: `b@${digest}` } } },
  { test: { image: `busybox:1@${digest}` } },
  { router: { ...address, secretKeys: { privateKey: "", password: "word" } } },
  { router: { ...address, secretKeys: { password: "word" } } },
  { router: { ...address, basePaths: ["/a/b", "/a/bc"] } },
  twoRouters({ default: true, topology: { rack: "a" } }, { topology: { rack: "b" } }),
  twoRouters({ default: true, basePaths: ["/p"] }, { basePaths: ["/p"], address: "10.0.0.2" }),
  twoRouters({ default: true, basePaths: ["/p"] }, { basePaths: ["/p"], port: 2222 }),
  twoRouters({ topology: { rack: "a" } }, { topology: { rack: "b" } }),
  directory({ basePaths: ["/storage-pool/nfs"], router: { port: 2222 } }),
  directory({ basePaths: ["/storage-pool/nfs"], router: { address: "10.0.0.2" } }),
  directory({ basePaths: ["/share/a", "/share/b"] }),
  {
    router: {},
    ...routers({
      existingSecret: undefined,
      keyFile: "/k",
      hostKeys: ["ssh-ed25519 AAAA"],
      settleTime: "1h",
    }),
  },
  { router: { secretKeys: { password: "word" } }, ...routers({ secretKeys: { privateKey: "k" } }) },
  groups(["a", "1"], ["b", "2"]),
  { controller: { extraArgs: ["-v=4", "--audit-interval=30m", "--rds-key-file=/k"] } },
  { node: { extraArgs: ["--fence-interval=10s", "--volume-metrics"] } },
  { router: {}, simulator: { enabled: true, extraArgs: ["--timing-scale=0"] } },
  { controller: { startupTaint: "mykubernetes.io/x" } },
  ...["10.0.0.255", "0.router.lan", "r1", "router-1", "1a", "::1", "fd00::ffff:10.0.0.1"].flatMap((host) => [
    { router: { address: host } },
    { router: { ...address, nvmeAddress: host } },
  ]),
  twoRouters({ default: true }, {}),
  twoRouters({ default: true }, { nvmeAddress: "10.1.0.1,10.2.0.1" }),
  ...["rds-csi", "localhost:5000/a/rds-csi", "ghcr.io/a_b/rds.csi"].map((repository) => ({
    image: { repository },
  })),
  { image: { tag: "v1.0_a-b.c", digest: `sha256:${"0".repeat(64)}`, registry: "r.example.net:5000" } },
  { global: { imageRegistry: "mirror.example.net/cache", ofAnotherChart: true } },
  { controller: { healthInterval: "0s", statusAddress: "127.0.0.1:9810" } },
  { controller: { healthInterval: "1h" } },
  { node: { fstrimInterval: "0s", sidecars: { livenessProbe: { port: 9809 } } } },
  { directory: { enabled: false, metricsPort: 9809 } },
  { router: { ...address, nvmeAddress: "10.0.0.1,fd00::2,router-2.lan" } },
  { router: { ...address, profile } },
  { router: {}, ...routers({ profile, nvmeAddress: "10.1.0.1" }) },
  directory({ router: { address: "10.0.0.2" }, metricsPort: 9812 }),
  { node: { fstrimInterval: "1h30m" } },
  { node: { statusAddress: "127.0.0.1:9809", metricsAddress: "10.0.0.7" } },
  { metricsPort: 9811 },
  { kubeletPath: "/data/kubelet", allowFolders: ["/data/kubelet"] },
  { kubeletPath: "/data/kubelet", allowFolders: ["/other", "/data"] },
  ...kubeletFolders.map((kubeletPath) => ({ kubeletPath })),
];

valuesTests(refused, accepted);

chartTest("the chart says everything that is wrong at once", () => {
  const values = { router: { address: "a:1" }, kubeletPath: "/k", node: { fstrimInterval: "1s" } };
  const { complaint } = render({ values });
  for (const words of [/has a port/, /kubeletPath/, /fstrimInterval/]) assert.match(complaint, words);
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
});

chartTest("the probe needs nothing but --probe in the controller's pod", () => {
  const { env = [] } = driverOf(only<Workload>(rendered(), "Deployment"));
  const variables = (name: string) => env.find((one) => one.name === name)?.value;
  const { router, node } = readDoctorHalves(["--probe"], variables, { readText: () => undefined });
  assert.deepEqual([router?.probe, router?.basePaths, node], [true, ["/storage-pool/metal-csi"], undefined]);
});
