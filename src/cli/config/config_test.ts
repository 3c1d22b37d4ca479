import assert from "node:assert/strict";
import { type Environment, readServeConfig, readVolumeCommand } from "./config.ts";
import { clusterFlags } from "./cluster.ts";
import { legacyFlags } from "./legacy_flags.ts";
import { routerFlags, serveFlags } from "./flag_tables.ts";
import { FlagError } from "../flags.ts";
import { formatProfile, type RouterProfile } from "../../router_profile/profile.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";

const none: Environment = () => undefined;
const reach = ["--rds-address", "10.0.0.1", "--rds-key", "/key", "--rds-host-key", "ssh-ed25519 AAAA"];
const controller = ["--mode", "controller", ...reach, "--cluster-id", "c"];
const node = ["--mode", "node", "--node-id", "node-1"];

function problemsOf(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof FlagError, String(error));
    return error.problems;
  }
  return [];
}

const serve = (args: readonly string[], env: Environment = none) => readServeConfig(args, env);

Deno.test("readServeConfig() has a default for everything except what only the operator can know", () => {
  assert.deepEqual(serve(["--node-id", "node-1", ...reach, "--cluster-id", "c"]), {
    ...{ warnings: [], cluster: undefined, endpoint: "unix:///csi/csi.sock" },
    ...{ kind: "block", directories: undefined, driverName: "rds.csi.srvlab.io" },
    metricsAddress: { hostname: "0.0.0.0", port: 9809 },
    ...{ logLevel: "info", logFormat: "json", volumeMetrics: false },
    ...{ audit: { intervalMs: 3_600_000, deleteOlderThanMs: undefined }, healthIntervalMs: 900_000 },
    routers: [{
      ...{ ids: VolumeIdPrefix.none, isDefault: true, topology: {} },
      router: {
        address: "10.0.0.1",
        port: 22,
        user: "rds-csi",
        keyFile: "/key",
        passwordFile: undefined,
        hostKeys: ["ssh-ed25519 AAAA"],
        insecureSkipVerify: false,
      },
      knownNodes: ["node-1"],
      profile: undefined,
      settings: {
        cluster: clusterHash("c"),
        backend: "default",
        basePaths: ["/storage-pool/metal-csi"],
        nvmeAddress: "10.0.0.1",
        nvmePort: 4420,
        nqnPrefix: "nqn.2000-02.com.mikrotik",
        routerAddress: "10.0.0.1",
        routerPort: 22,
        settleMs: 120_000,
        unexportGraceMs: 10_000,
        overcommit: 1,
        growth: "after-toggle",
        growsByToggle: false,
        ...{ subvolumeNames: "nested", harmsOthers: false },
        ...{ copyReturns: undefined, bootIdentity: undefined },
      },
    }],
    node: {
      nodeId: "node-1",
      connector: "nvme-tcp",
      loopBacking: "",
      stateDirectory: "/var/lib/kubelet/plugins/rds.csi.srvlab.io/state",
      maxVolumesPerNode: 0,
      ...{ nqnPrefix: "nqn.2000-02.com.mikrotik", topology: {}, deviceLayer: "none" },
      fenceIntervalMs: 30_000,
      ...{ fenceSettleMs: 120_000, fstrimIntervalMs: 0 },
    },
    ...{ registration: undefined, statusAddress: undefined },
  });
});

Deno.test("readServeConfig() serves metrics at the given address, or nowhere, and refuses an invalid address", () => {
  const read = (text: string) => serve([...node, "--metrics-address", text]).metricsAddress;
  assert.deepEqual(read("127.0.0.1:0"), { hostname: "127.0.0.1", port: 0 });
  assert.equal(read(""), undefined);
  assert.deepEqual(problemsOf(() => read("9809")), [
    '--metrics-address cannot be "9809"; use host:port, [IPv6]:port, :port, or nothing',
  ]);
});

Deno.test("readServeConfig() registers a node under the path at which its kubelet sees the socket", () => {
  const socket = "/var/lib/kubelet/plugins/rds.csi.srvlab.io/csi.sock";
  const table: readonly (readonly [flags: readonly string[], kubelet: string, seen: string])[] = [
    [["--endpoint", `unix://${socket}`], "/var/lib/kubelet", socket],
    [["--endpoint", `unix:${socket}`, "--kubelet-path", "/var/lib/kubelet/"], "/var/lib/kubelet", socket],
    [["--endpoint", "/k0s/csi.sock", "--kubelet-path", "/k0s"], "/k0s", "/k0s/csi.sock"],
    [["--kubelet-endpoint", socket], "/var/lib/kubelet", socket],
  ];
  for (const [flags, kubeletPath, socketPath] of table) {
    assert.deepEqual(serve([...node, "--register", ...flags]).registration, { kubeletPath, socketPath });
    assert.equal(serve([...node, ...flags]).registration, undefined);
  }
});

Deno.test("readServeConfig() leaves out the half that is not served, and its required flags", () => {
  assert.deepEqual(serve(node).routers, []);
  assert.equal(serve(controller).node, undefined);
});

/** The flags of the legacy driver's own manifests, with the values that Kubernetes inserts. */
const earlierController = [
  ...["-endpoint=unix:///var/lib/csi/sockets/pluginproxy/csi.sock", "-node-id=worker-1", "-controller"],
  ...["-rds-address=10.0.0.1", "-rds-port=22", "-rds-user=metal-csi"],
  ...["-rds-key-file=/etc/rds-csi/rds-private-key", "-rds-host-key=/etc/rds-csi/rds-host-key"],
  ...[
    "-rds-volume-base-path=/storage-pool/metal-csi",
    "-enable-orphan-reconciler",
    "-orphan-check-interval=1h",
  ],
  ...["-orphan-grace-period=5m", "-orphan-dry-run=true", "-v=5"],
];

Deno.test("readServeConfig() accepts the legacy driver's flags as its controller gets them", () => {
  const config = serve([...earlierController, "-cluster-id=c"]);
  const { router, settings } = config.routers[0]!;
  assert.equal(config.node, undefined);
  assert.equal(config.endpoint, "unix:///var/lib/csi/sockets/pluginproxy/csi.sock");
  assert.deepEqual([router.address, router.user], ["10.0.0.1", "metal-csi"]);
  assert.deepEqual([router.keyFile, router.hostKeys], [
    "/etc/rds-csi/rds-private-key",
    ["/etc/rds-csi/rds-host-key"],
  ]);
  assert.deepEqual(settings.basePaths, ["/storage-pool/metal-csi"]);
  const warned = config.warnings.map((warning) => warning.split(" ")[0]);
  assert.deepEqual(warned, [
    "--enable-orphan-reconciler",
    "--orphan-check-interval",
    "--orphan-grace-period",
    "--orphan-dry-run",
    "--v",
  ]);
});

Deno.test("readServeConfig() accepts the legacy driver's flags as its node gets them", () => {
  const config = serve(["-endpoint=unix:///csi/csi.sock", "-node-id=worker-1", "-node", "-v=5"]);
  assert.deepEqual([config.routers, config.node?.nodeId], [[], "worker-1"]);
});

Deno.test("readServeConfig() accepts every other flag of the legacy driver, with a warning", () => {
  const names = ["attachment-grace-period", "attachment-reconcile-interval", "vmi-cache-ttl", "vmodule"];
  const switches = ["enable-vmi-serialization", "logtostderr", "alsologtostderr"];
  const flags = [...names.flatMap((name) => [`--${name}`, "1m"]), ...switches.map((name) => `-${name}=T`)];
  const { warnings } = serve([...node, ...flags]);
  assert.deepEqual(
    warnings.map((warning) => warning.split(" ")[0]).toSorted(),
    [...names, ...switches].map((name) => `--${name}`).toSorted(),
  );
});

Deno.test("no flag with a meaning here counts as one of the legacy driver without effect", () => {
  for (const name of Object.keys(legacyFlags)) {
    assert.equal(Object.hasOwn(routerFlags, name) || Object.hasOwn(clusterFlags, name), false, name);
    assert.equal(serveFlags[name]?.ignored !== undefined, true, name);
  }
});

Deno.test("readServeConfig() serves the halves that the legacy driver's switches name", () => {
  const both = [...controller.slice(2), "--node-id", "n", "-controller", "-node"];
  const halves = (args: readonly string[]) => {
    const config = serve(args);
    return [config.routers.length > 0, config.node !== undefined];
  };
  assert.deepEqual(halves(both), [true, true]);
  assert.deepEqual(halves([...both, "-node=false"]), [true, false]);
  assert.deepEqual(halves([...both, "-controller=0"]), [false, true]);
  assert.deepEqual(halves([...both, "-controller=0", "-node=0"]), [true, true]);
  assert.deepEqual(halves([...both, "--mode", "all"]), [true, true]);
});

const wrong: readonly (readonly [args: readonly string[], flag: string])[] = [
  [[...controller, "--node-id", "n", "--mode", "both"], "mode"],
  [[...controller, "--node-id", "n", "-node"], "mode"],
  [[...controller, "--node-id", "n", "-controller", "-node"], "mode"],
  [[...controller, "--log-level", "loud"], "log-level"],
  [[...controller, "--log-format", "xml"], "log-format"],
  [[...controller, "--driver-name", "-rds"], "driver-name"],
  [[...controller, "--driver-name", "x".repeat(64)], "driver-name"],
  [[...controller, "--driver-name="], "driver-name"],
  [[...controller, "--rds-address="], "rds-address"],
  [[...controller, "--rds-address", "10.0.0.1 "], "rds-address"],
  [[...controller, "--rds-port", "0"], "rds-port"],
  [[...controller, "--rds-port", "65536"], "rds-port"],
  [[...controller, "--rds-port", "ssh"], "rds-port"],
  [[...controller, "--rds-insecure-skip-verify=perhaps"], "rds-insecure-skip-verify"],
  [[...controller, "--base-path", "storage-pool/csi"], "base-path"],
  [[...controller, "--base-path", "/storage-pool/../csi"], "base-path"],
  [[...controller, "--base-path", "/storage-pool/csi/"], "base-path"],
  [[...controller, "--base-path", "/storage-pool/c;si"], "base-path"],
  [[...controller, "--base-path", "/" + "x".repeat(64)], "base-path"],
  [[...controller, "--base-path", "/good", "--base-path", "bad"], "base-path"],
  [[...controller, "--nvme-address", "10.0.0.1:4420"], "nvme-address"],
  [[...controller, "--nvme-address", "10.0.0.1,10.0.0.300"], "nvme-address"],
  [[...controller, "--nvme-port", "99999"], "nvme-port"],
  [[...controller, "--nvme-port", "abc"], "nvme-port"],
  [[...controller, "--nqn-prefix", "mikrotik"], "nqn-prefix"],
  [[...controller, "--nqn-prefix", 'nqn.2000-02.com."x'], "nqn-prefix"],
  [[...controller, "--nqn-prefix", "nqn.2000-02.com.mikrotik:nas2"], "nqn-prefix"],
  [[...controller, "--nqn-prefix", "nqn.2000-02.com." + "x".repeat(145)], "nqn-prefix"],
  [[...controller, "--cluster-id="], "cluster-id"],
  [[...controller, "--known-node", "node_1"], "known-node"],
  [[...controller, "--known-node", "x".repeat(65)], "known-node"],
  [[...controller, "--settle-time", "120"], "settle-time"],
  [[...controller, "--settle-time", "2h"], "settle-time"],
  [[...controller, "--unexport-grace", "forever"], "unexport-grace"],
  // Longer than a timer can wait, it would be no grace period at all.
  [[...controller, "--unexport-grace", "1000h"], "unexport-grace"],
  [[...controller, "--overcommit", "0"], "overcommit"],
  [[...controller, "--overcommit", "101"], "overcommit"],
  [[...node, "--node-id", "node/1"], "node-id"],
  [[...node, "--node-id", "x".repeat(65)], "node-id"],
  [["--mode", "node"], "node-id"],
  [[...node, "--connector", "iscsi"], "connector"],
  [[...node, "--connector", "loop"], "loop-backing"],
  [[...node, "--max-volumes-per-node", "-1"], "max-volumes-per-node"],
  [[...node, "--fence-interval", "0s"], "fence-interval"],
  [[...node, "--fence-interval", "41s"], "fence-settle-time"],
  [[...node, "--fence-settle-time", "89s"], "fence-settle-time"],
  [[...node, "--fstrim-interval", "59s"], "fstrim-interval"],
  [[...controller, "--health-interval", "59s"], "health-interval"],
  [[...controller, "--health-interval", "2h"], "health-interval"],
  // Longer than a timer can wait, it would be no interval at all.
  [[...node, "--fstrim-interval", "481h"], "fstrim-interval"],
  [[...controller, "--endpoint", "/var/lib/kubelet/a.sock", "--register"], "register"],
  [[...node, "--register"], "endpoint"],
  [[...node, "--endpoint", "tcp://127.0.0.1:0", "--register"], "endpoint"],
  [[...node, "--register", "--endpoint", "/var/lib/kubeletx/csi.sock"], "endpoint"],
  [[...node, "--register", "--kubelet-endpoint", "plugins/csi.sock"], "kubelet-endpoint"],
  [[...node, "--register", "--kubelet-endpoint", "/k/../csi.sock"], "kubelet-endpoint"],
  [[...node, "--register", "--kubelet-endpoint", "/k/csi.sock", "--kubelet-path", "kubelet"], "kubelet-path"],
];

for (const [args, flag] of wrong) {
  Deno.test(`readServeConfig() refuses ${args.slice(-2).join(" ").slice(0, 60)} and names --${flag}`, () => {
    const problems = problemsOf(() => serve(args));
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0]!, new RegExp(`^--${flag} `));
  });
}

Deno.test("readServeConfig() reports everything that is wrong at once", () => {
  const problems = problemsOf(() =>
    serve(["--mode", "all", "--rds-port", "x", "--overcommit", "0", "--what"])
  );
  const expected = ["what", "rds-address", "rds-port", "rds-key", "rds-host-key", "cluster-id", "node-id"];
  for (const flag of [...expected, "overcommit"]) {
    assert.equal(problems.filter((problem) => problem.startsWith(`--${flag} `)).length, 1, flag);
  }
  assert.equal(problems.length, expected.length + 1, problems.join("\n"));
});

Deno.test("readVolumeCommand() requires what reaches the router, and no node", () => {
  const flags = problemsOf(() => readVolumeCommand(["pvc-1"], none)).map((problem) => problem.split(" ")[0]);
  assert.deepEqual(flags.toSorted(), ["--cluster-id", "--rds-address", "--rds-host-key", "--rds-key"]);
  assert.deepEqual(readVolumeCommand(["pvc-1", ...reach, "--cluster-id", "c"], none).config.knownNodes, []);
});

Deno.test("a password file may replace a key, and skipping verification a host key", () => {
  const args = [
    "--mode",
    "controller",
    "--rds-address",
    "r",
    "--cluster-id",
    "c",
    "--rds-password-file",
    "/p",
  ];
  const { router } = serve([...args, "--rds-insecure-skip-verify"]).routers[0]!;
  assert.equal(router.passwordFile, "/p");
  assert.equal(router.insecureSkipVerify, true);
});

Deno.test("a secret in place of its file is refused and never shown", () => {
  const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret/AAA\n-----END OPENSSH PRIVATE KEY-----";
  for (
    const [flag, secret] of [["rds-key", key], ["rds-password-file", "hunter2"], ["rds-password", "hunter2"]]
  ) {
    const text = problemsOf(() => serve([...controller, `--${flag}`, secret!])).join("\n");
    assert.match(text, new RegExp(`^--${flag} `));
    assert.doesNotMatch(text, /hunter2|AAA|BEGIN/);
  }
});

Deno.test("the environment sets flags that are left out", () => {
  const variables: Readonly<Record<string, string>> = {
    RDS_ADDRESS: "10.0.0.9",
    RDS_PORT: "2222",
    RDS_USER: "csi",
    RDS_PASSWORD_FILE: "/run/password",
    RDS_HOST_KEY: "router,10.0.0.9 ssh-ed25519 AAAA",
    RDS_BASE_PATH: "/a/b,/c/d",
    RDS_NVME_ADDRESS: "10.1.0.9",
    RDS_CLUSTER_ID: "from env",
    CSI_ENDPOINT: "unix:///run/csi.sock",
    KUBE_NODE_NAME: "worker-1",
    NODE_ID: "",
  };
  const config = serve([], (name) => variables[name]);
  assert.equal(config.endpoint, "unix:///run/csi.sock");
  assert.equal(config.node?.nodeId, "worker-1");
  const { router, settings } = config.routers[0]!;
  assert.deepEqual([router.address, router.port, router.user], ["10.0.0.9", 2222, "csi"]);
  assert.equal(router.passwordFile, "/run/password");
  assert.deepEqual(router.hostKeys, ["router,10.0.0.9 ssh-ed25519 AAAA"]);
  assert.deepEqual(settings.basePaths, ["/a/b", "/c/d"]);
  assert.equal(settings.nvmeAddress, "10.1.0.9");
  assert.equal(settings.cluster, clusterHash("from env"));
});

Deno.test("a controller has a cluster in a pod or by --kubeconfig, and then needs no --cluster-id", () => {
  const inPod = {
    KUBERNETES_SERVICE_HOST: "10.96.0.1",
    KUBERNETES_SERVICE_PORT: "443",
    POD_NAMESPACE: "csi",
  };
  const env = (name: string) => (inPod as Readonly<Record<string, string>>)[name];
  const mode = ["--mode", "controller", ...reach];
  const folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  const config = serve(mode, env);
  const address = { host: "10.96.0.1", port: "443", folder };
  const rounds = { intervalMs: 60_000, reconcile: { mode: "on", graceMs: 600_000 }, namesOnRouter: true };
  assert.deepEqual(config.cluster, {
    address,
    leaseNamespace: "csi",
    rounds,
    migrationPairs: "any",
    startupTaint: "",
    leaderElection: false,
    leaseIdentity: "rds-csi",
  });
  assert.equal(config.routers[0]?.settings.cluster, "");
  const given = serve([...mode, "--kubeconfig", "/etc/rds-csi/config", "--cluster-id", "c"], env);
  assert.deepEqual(given.cluster?.address, { kubeconfig: "/etc/rds-csi/config" });
  assert.equal(given.routers[0]?.settings.cluster, clusterHash("c"));
  assert.equal(serve([...mode, "--names-on-router=false"], env).cluster?.rounds.namesOnRouter, false);
  assert.equal(serve([...controller, "--kubernetes", "off"], env).cluster, undefined);
  assert.equal(serve([...node], env).cluster, undefined);
  assert.match(problemsOf(() => serve([...mode, "--kubernetes", "off"], env)).join(), /^--cluster-id /);
  assert.match(problemsOf(() => serve([...controller, "--kubernetes", "on"])).join(), /^--kubernetes /);
  assert.match(
    problemsOf(() => serve([...controller, "--migration-pairs", "kubevirt"])).join(),
    /^--migration-/,
  );
  assert.match(problemsOf(() => serve([...controller, "--lease-namespace", "A"], env)).join(), /^--lease-n/);
});

Deno.test("--leader-election is for a controller alone, with a cluster to elect in", () => {
  const elect = [...controller, "--leader-election"];
  const inPod = (name: string) => name === "POD_NAME" ? "rds-csi-0" : undefined;
  const { cluster } = serve([...elect, "--kubeconfig", "/etc/rds-csi/config"], inPod);
  assert.deepEqual([cluster?.leaderElection, cluster?.leaseIdentity], [true, "rds-csi-0"]);
  for (
    const more of [[], ["--kubernetes", "off"], ["--kubeconfig", "/k", "--mode", "all", "--node-id", "n"]]
  ) {
    assert.match(
      problemsOf(() => serve([...elect, ...more])).join("\n"),
      /--leader-election /,
      more.join(" "),
    );
  }
});

Deno.test("--startup-taint takes the key of a taint that is not one of Kubernetes, if there is a cluster", () => {
  const mode = ["--mode", "controller", ...reach, "--kubeconfig", "/etc/rds-csi/config"];
  for (const key of ["rds.csi.srvlab.io/agent-not-ready", "not-ready", "a/B_c.d"]) {
    assert.equal(serve([...mode, "--startup-taint", key]).cluster?.startupTaint, key);
  }
  const wrong = [
    ...["a/b:NoSchedule", "a/b=c", "a/b/c", "/b", "A/b", "a/", "-", "x".repeat(64)],
    ...["node.kubernetes.io/not-ready", "kubernetes.io/x", "node-role.k8s.io/x"],
  ];
  for (const key of wrong) {
    assert.match(
      problemsOf(() => serve([...mode, "--startup-taint", key])).join(),
      /^--startup-taint /,
      key,
    );
  }
  assert.match(
    problemsOf(() => serve([...controller, "--startup-taint", "a/b"])).join(),
    /^--startup-taint .*; use it in a cluster/,
  );
});

Deno.test("every fallback is a value that its flag allows", () => {
  const given = Object.entries(serveFlags)
    .filter(([name, flag]) => flag.fallback !== undefined && name !== "mode")
    .map(([name, flag]) => `--${name}=${flag.fallback}`);
  serve([...given, "--node-id", "n", ...reach, "--cluster-id", "c"]);
  assert.ok(given.length > 10);
  assert.ok(Object.keys(routerFlags).every((name) => Object.hasOwn(serveFlags, name)));
});

const probed: RouterProfile = {
  name: "my router",
  version: "7.24 (stable)",
  poolFilesystem: "btrfs",
  answers: { limits: "enough", unexport: 2000 },
};

function withProfile(profile: RouterProfile, flags: readonly string[] = []) {
  const args = ["pvc-1", ...reach, "--cluster-id", "c", "--router-profile", "/profile.json", ...flags];
  const readText = (path: string) => {
    assert.equal(path, "/profile.json");
    return formatProfile(profile);
  };
  return readVolumeCommand(args, none, { readText }).config;
}

Deno.test("readServeConfig() warns of a profile for a node, which connects to no router", () => {
  const { warnings } = serve([...node, "--router-profile", "/profile.json"]);
  assert.deepEqual(warnings, ["--router-profile has no effect because a node connects to no router"]);
});

Deno.test("readVolumeCommand() takes the grace from the router's profile, and keeps the profile", () => {
  const { profile, settings } = withProfile(probed);
  assert.deepEqual(profile, probed);
  assert.deepEqual([settings.settleMs, settings.unexportGraceMs], [120_000, 4000]);
});

Deno.test("readVolumeCommand() takes from the router's profile how the router behaves", () => {
  const answers = {
    grow: "live",
    subvolumeNames: "flat",
    copyReturns: "when-done",
    sideEffects: "ends-sessions",
  } as const;
  const { settings } = withProfile({ ...probed, answers });
  assert.deepEqual(
    [settings.growth, settings.subvolumeNames, settings.copyReturns, settings.harmsOthers],
    ["live", "flat", "when-done", true],
  );
});

Deno.test("readVolumeCommand() lets exports in use be toggled only if the profile knows the effect", () => {
  const grow = "after-toggle";
  const known = [{ grow, unexport: 0 }, { grow, unexport: 5000 }, { grow, unexport: "refuses-commands" }, {
    grow,
  }, {
    unexport: 0,
  }] as const;
  const toggles = known.map((answers) => withProfile({ ...probed, answers }).settings.growsByToggle);
  assert.deepEqual(toggles, [true, true, false, false, false]);
});

Deno.test("readVolumeCommand() prefers a wait from its flag to the profile's, and uses the default without both", () => {
  const explicit = withProfile(probed, ["--settle-time", "5s", "--unexport-grace", "0s"]).settings;
  assert.deepEqual([explicit.settleMs, explicit.unexportGraceMs], [5000, 0]);
  const silent = withProfile({ ...probed, answers: {} }).settings;
  assert.deepEqual([silent.settleMs, silent.unexportGraceMs], [120_000, 10_000]);
});

const unfit: readonly (readonly [what: string, answers: RouterProfile["answers"], reason: RegExp])[] = [
  [
    "limits that are too small",
    { limits: "too-small" },
    /too small for slots of 32 characters, comments of 255 bytes, NQNs of 76, answers of 2048 and commands of 1024/,
  ],
  ["exports that linger too long", { unexport: 200_000 }, /--unexport-grace is at most 300s .*it is 400s/],
];

for (const [what, answers, reason] of unfit) {
  Deno.test(`readVolumeCommand() refuses the profile of a router with ${what}, and says why`, () => {
    const problems = problemsOf(() => withProfile({ ...probed, answers: { ...probed.answers, ...answers } }));
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0]!, /^--router-profile /);
    assert.match(problems[0]!, reason);
  });
}

Deno.test("readVolumeCommand() names the flag when a profile cannot be read, or is invalid", () => {
  const args = ["pvc-1", ...reach, "--cluster-id", "c", "--router-profile", "/profile.json"];
  const missing = problemsOf(() =>
    readVolumeCommand(args, none, {
      readText() {
        throw new Error("no such file");
      },
    })
  );
  assert.match(missing.join("\n"), /^--router-profile cannot be "\/profile.json"; .*no such file/);
  const foreign = problemsOf(() => readVolumeCommand(args, none, { readText: () => "{}" }));
  assert.match(foreign.join("\n"), /^--router-profile .*no router profile/);
});

Deno.test("readServeConfig() reads a node's topology, and refuses invalid or repeated segments", () => {
  const placed = serve([...node, "--topology", "rack=a", "--topology", "example.com/zone=b-1"]);
  assert.deepEqual(placed.node?.topology, { rack: "a", "example.com/zone": "b-1" });
  for (const given of [["rack"], ["=a"], ["rack="], ["rack=a b"], ["rack=a", "rack=b"]]) {
    const problems = problemsOf(() => serve([...node, ...given.flatMap((one) => ["--topology", one])]));
    assert.match(problems.join(), /--topology cannot be ".*"; use key=value/, given.join());
  }
});
