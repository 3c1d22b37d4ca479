import assert from "node:assert/strict";
import { FlagError } from "../flags.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { readDoctorHalves, readDoctorOptions } from "./options.ts";

const read = (...args: readonly string[]) => readDoctorOptions(args, () => undefined);
const reach = ["--rds-address", "10.0.0.1"];
const probe = [...reach, "--rds-key", "/key", "--rds-host-key", "ssh-ed25519 AAAA", "--probe"];

Deno.test("readDoctorOptions() needs an address, and nothing else", () => {
  const options = read(...reach);
  assert.deepEqual([options.probe, options.output, options.cluster], [false, "", undefined]);
  assert.deepEqual([options.nvmeAddress, options.nvmePort], ["10.0.0.1", 4420]);
  assert.deepEqual(options.basePaths, ["/storage-pool/metal-csi"]);
  assert.equal(read(...reach, "--cluster-id", "c").cluster, clusterHash("c"));
});

const wrong: readonly (readonly [args: readonly string[], flag: string])[] = [
  [[], "rds-address"],
  [[...reach, "--rds-password-file", "hunter2"], "rds-password-file"],
  [[...reach, "--base-path", "csi"], "base-path"],
  [[...reach, "--nvme-address", "10.0.0.300"], "nvme-address"],
  ...["host-key", "./host-key", "AAAAC3NzaC1lZDI1NTE5AAAA", "~/.ssh/known_hosts"].map((text) =>
    [[...reach, "--rds-host-key", text], "rds-host-key"] as const
  ),
  [probe, "base-path"],
  [[...probe, "--base-path", "/a/b", "--base-path", "/a/c"], "base-path"],
  [[...reach, "--probe", "--base-path", "/a/b", "--rds-host-key", "ssh-rsa A"], "rds-key"],
  [[...reach, "--probe", "--base-path", "/a/b", "--rds-key", "/key"], "rds-host-key"],
  [[...reach, "--output", "/tmp/profile.json"], "output"],
  [[...reach, "--before-reboot"], "before-reboot"],
  [[...reach, "--after-reboot"], "after-reboot"],
  [[...probe, "--base-path", "/a/b", "--before-reboot", "--after-reboot"], "before-reboot"],
  [[...probe, "--base-path", "/a/b", "--before-reboot", "--output", "/tmp/profile.json"], "before-reboot"],
  [[...reach, "--what"], "what"],
];

const halves:
  readonly (readonly [args: readonly string[], env: Record<string, string>, which: string, id?: string])[] = [
    [[], {}, "node", "worker-7"],
    [["--node"], {}, "node", "worker-7"],
    [[], { NODE_ID: "n1" }, "node", "n1"],
    [["--node-id", "n2"], { NODE_ID: "n1" }, "node", "n2"],
    [reach, {}, "router"],
    [[], { RDS_ADDRESS: "10.0.0.1" }, "router"],
    [["--node"], { RDS_ADDRESS: "10.0.0.1" }, "router and node", "worker-7"],
    [[], { RDS_ADDRESS: "10.0.0.1", KUBE_NODE_NAME: "n3" }, "router and node", "n3"],
    [[...probe, "--base-path", "/a/b"], { NODE_ID: "n1" }, "router"],
  ];

for (const [args, env, which, id] of halves) {
  Deno.test(`readDoctorHalves() reads ${which} for ${JSON.stringify([args.slice(0, 2), env])}`, () => {
    const files = new FakeKernelFiles();
    files.texts.set("/proc/sys/kernel/hostname", "Worker-7");
    const { router, node } = readDoctorHalves(args, (name) => env[name], files);
    const found = [router && "router", node && "node"].filter((half) => half !== undefined);
    assert.equal(found.join(" and "), which);
    assert.equal(node?.config.nodeId, id);
    assert.equal(node?.nodeIdGuessed ?? false, id === "worker-7");
  });
}

Deno.test("readDoctorHalves() names the problems of both halves, once", () => {
  const files = new FakeKernelFiles(); // The machine has no name either.
  const args = ["--node", "--nqn-prefix", "x", "--kubelet-dir", "kubelet", ...reach];
  assert.throws(() => readDoctorHalves(args, () => undefined, files), (error) => {
    assert.ok(error instanceof FlagError);
    assert.deepEqual(error.problems.map((text) => text.split(" ")[0]).toSorted(), [
      "--kubelet-dir",
      "--node-id",
      "--nqn-prefix",
    ]);
    return true;
  });
});

for (const [args, flag] of wrong) {
  Deno.test(`readDoctorOptions() refuses ${args.slice(2).join(" ") || "nothing"} and names --${flag}`, () => {
    assert.throws(
      () => read(...args),
      (error) => {
        assert.ok(error instanceof FlagError);
        assert.equal(error.problems.length, 1, error.message);
        assert.match(error.message, new RegExp(`^--${flag} `));
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      },
    );
  });
}

Deno.test("readDoctorOptions() reads whether a probe runs before or after a reboot", () => {
  const at = (...flags: string[]) =>
    read(...probe, "--base-path", "/storage-pool/metal-csi", ...flags).reboot;
  assert.deepEqual([at(), at("--before-reboot"), at("--after-reboot")], ["", "before", "after"]);
});

Deno.test("readDoctorOptions() uses a base path for the probe only if it is named", () => {
  const options = read(...probe, "--base-path", "/storage-pool/metal-csi", "--output", "/tmp/p.json");
  assert.deepEqual([options.probe, options.basePaths, options.output], [
    true,
    ["/storage-pool/metal-csi"],
    "/tmp/p.json",
  ]);
});
