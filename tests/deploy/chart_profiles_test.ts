import assert from "node:assert/strict";
import { formatProfile, type RouterProfile } from "../../src/router_profile/profile.ts";
import { chartTest, rendered } from "./chart.ts";
import { configOf, filesOf } from "./judge.ts";
import { driverOf, only, type Workload } from "./objects.ts";

/** Returns a router profile of a probe. */
function profile(disksLate: number | undefined): RouterProfile {
  return {
    name: "RDS2216 7.24",
    version: "7.24 (stable)",
    vocabulary: { rose: true, fileCopy: true },
    poolFilesystem: "xfs",
    answers: { grow: "never", unexport: 2000, ...disksLate === undefined ? {} : { disksLate } },
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

chartTest("a router's profile reaches the controller, and nodes as far as it is about them", () => {
  const { controller, node } = configsOf(of(formatProfile(profile(60_000))));
  const { settings, profile: known } = controller.config.routers[0]!;
  assert.deepEqual([settings.settleMs, settings.unexportGraceMs, settings.growth], [100_000, 4000, "never"]);
  assert.deepEqual(known, profile(60_000));
  assert.equal(node.config.node?.fenceSettleMs, 100_000);
});

chartTest("without a profile nothing of it is rendered, and the defaults hold", () => {
  const { controller, node } = configsOf(of(undefined));
  assert.equal(controller.config.routers[0]!.profile, undefined);
  assert.equal(node.config.node?.fenceSettleMs, 120_000);
  assert.doesNotMatch(JSON.stringify([controller.workload, node.workload]), /profile/);
});

chartTest("another profile makes other pods, as it is read at the start only", () => {
  const sums = (disksLate: number) => {
    const { controller, node } = configsOf(of(formatProfile(profile(disksLate))));
    return [controller, node].map(({ workload }) =>
      workload.spec.template.metadata.annotations?.["checksum/router-profiles"]
    );
  };
  assert.deepEqual(sums(1), sums(1));
  assert.notDeepEqual(sums(1), sums(2));
  assert.ok(sums(1).every((sum) => sum !== undefined));
});

chartTest("each of several routers has a profile of its own, and nodes wait for the latest", () => {
  const router = (name: string, disksLate: number | undefined, more = {}) => ({
    name,
    address: `${name}.example.com`,
    existingSecret: name,
    profile: formatProfile(profile(disksLate)),
    ...more,
  });
  const late = configsOf({ config: { routers: [router("a", 0), router("b", 200_000)] } });
  assert.deepEqual(late.controller.config.routers.map(({ settings }) => settings.settleMs), [
    30_000,
    310_000,
  ]);
  assert.equal(late.node.config.node?.fenceSettleMs, 310_000);
  const unknown = configsOf({ config: { routers: [router("a", 0), router("b", undefined)] } });
  assert.equal(
    unknown.node.config.node?.fenceSettleMs,
    120_000,
    "of one that says nothing the default is assumed",
  );
  const missing = configsOf({
    config: { routers: [router("a", 0), router("b", 0, { profile: undefined })] },
  });
  assert.equal(missing.controller.config.routers[0]!.settings.settleMs, 30_000);
  assert.equal(missing.node.config.node?.fenceSettleMs, 120_000, "one has no profile");
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
