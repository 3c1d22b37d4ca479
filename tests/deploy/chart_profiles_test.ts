import assert from "node:assert/strict";
import { formatProfile, type RouterProfile } from "../../src/router_profile/profile.ts";
import { chartTest, rendered } from "./chart.ts";
import { configOf, filesOf } from "./judge.ts";
import { driverOf, only, type Workload } from "./objects.ts";

/** Returns a router profile of a probe. */
function profile(unexport: number): RouterProfile {
  return {
    name: "RDS2216 7.24",
    version: "7.24 (stable)",
    poolFilesystem: "xfs",
    answers: { grow: "live", unexport },
  };
}

function configsOf(values: object) {
  const objects = rendered({ values });
  const [controller, node] = ["Deployment", "DaemonSet"].map((kind) => {
    const workload = only<Workload>(objects, kind);
    return { workload, config: configOf(driverOf(workload), filesOf(workload, objects)) };
  });
  return { controller: controller!, node: node! };
}

const of = (profile: unknown) => ({ router: { address: "10.0.0.1", profile } });

chartTest("a router's profile reaches the controller, and no node", () => {
  const { controller, node } = configsOf(of(formatProfile(profile(2000))));
  const { settings, profile: known } = controller.config.routers[0]!;
  assert.deepEqual([settings.unexportGraceMs, settings.growth], [4000, "live"]);
  assert.deepEqual(known, profile(2000));
  assert.doesNotMatch(JSON.stringify(node.workload), /profile/);
});

chartTest("without a profile nothing of it is rendered, and the defaults hold", () => {
  const { controller, node } = configsOf(of(undefined));
  assert.equal(controller.config.routers[0]!.profile, undefined);
  assert.doesNotMatch(JSON.stringify([controller.workload, node.workload]), /profile/);
});

chartTest("another profile makes another controller, as it is read at the start only", () => {
  const sums = (unexport: number) => {
    const { controller, node } = configsOf(of(formatProfile(profile(unexport))));
    return [controller, node].map(({ workload }) =>
      workload.spec.template.metadata.annotations?.["checksum/router-profiles"]
    );
  };
  assert.deepEqual(sums(1), sums(1));
  assert.notEqual(sums(1)[0], sums(2)[0]);
  assert.deepEqual([typeof sums(1)[0], sums(1)[1]], ["string", undefined]);
});

chartTest("each of several routers has a profile of its own, or none", () => {
  const router = (name: string, more = {}) => ({
    name,
    address: `${name}.example.com`,
    existingSecret: name,
    ...more,
  });
  const routers = [
    router("a", { default: true, profile: formatProfile(profile(0)) }),
    router("b", { profile: formatProfile(profile(7000)) }),
    router("c"),
  ];
  const { controller } = configsOf({ config: { routers } });
  assert.deepEqual(controller.config.routers.map(({ settings }) => settings.unexportGraceMs), [
    1000,
    14_000,
    10_000,
  ]);
});

chartTest("what a user adds to pods is in them: volumes, mounts and variables", () => {
  const extra = {
    extraEnv: [{ name: "EXAMPLE", value: "1" }],
    extraVolumes: [{ name: "more", emptyDir: {} }],
    extraVolumeMounts: [{ name: "more", mountPath: "/etc/rds-csi/more", readOnly: true }],
  };
  const { controller, node } = configsOf({ ...of(undefined), controller: extra, node: extra });
  for (const { workload } of [controller, node]) {
    const driver = driverOf(workload);
    assert.ok(driver.env?.some(({ name }) => name === "EXAMPLE"));
    assert.deepEqual(driver.volumeMounts.at(-1), extra.extraVolumeMounts[0]);
    assert.deepEqual(workload.spec.template.spec.volumes.at(-1), extra.extraVolumes[0]);
  }
});
