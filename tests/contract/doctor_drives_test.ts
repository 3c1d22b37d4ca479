import assert from "node:assert/strict";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import { type Scene, withScene } from "./_fix_scene.ts";

/** Spoils a router, and expects these findings about drives, in one line each. */
function drivesTest(
  name: string,
  spoil: (scene: Scene) => Promise<void>,
  expected: readonly RegExp[],
  options: Partial<SimulatorOptions> = {},
): void {
  Deno.test(name, () =>
    withScene(options, async (scene) => {
      await spoil(scene);
      const lines = (await scene.findings()).filter(({ check }) => check === "drives")
        .map(({ state, found, fix = "" }) => `${state} ${found}: ${fix}`);
      assert.equal(lines.length, expected.length, lines.join("\n"));
      for (const [index, form] of expected.entries()) assert.match(lines[index]!, form);
    }));
}

const model = "SAMSUNG MZWLO7T6HBLA-00A07";
const fixOf = (slot: string) => `: /disk/print detail where slot~"${slot}"$`;
const [first, second] = [1, 2].map((number) => `nvme${number} \\(${model}, serial S794NC0W10000${number}\\)`);

drivesTest(
  "doctor names a failed, a read-only and a worn drive by slot, model and serial number",
  async (scene) => {
    await scene.control("PATCH /disks/nvme1", {
      "raid-member-failed": true,
      "critical-warning": ["read-only"],
    });
    await scene.control("PATCH /disks/nvme2", { "percentage-used": 101 });
  },
  [
    new RegExp(
      `^problem /storage-pool: ${first} has failed as a member of the array storage-pool${fixOf("nvme1")}`,
    ),
    new RegExp(`^problem /storage-pool: ${first} takes no writes any more${fixOf("nvme1")}`),
    new RegExp(`^warning /storage-pool: ${second} has used 101 % of its expected life${fixOf("nvme2")}`),
  ],
);

drivesTest(
  "doctor names a drive although the answer about Btrfs is lost",
  async (scene) => {
    await scene.control("PATCH /disks/nvme2", { "percentage-used": 101 });
    await scene.control("POST /faults", {
      action: "drop-after",
      match: "btrfs/filesystem",
      times: "always",
    });
  },
  [
    new RegExp(`^warning /storage-pool: ${second} has used 101 % of its expected life${fixOf("nvme2")}`),
    /^warning the Btrfs file systems cannot be checked: .* its answer was lost/,
  ],
);

drivesTest("doctor counts the drives that report their health", () => Promise.resolve(), [
  /^ok 2 drives and partitions, of which 2 report their health; no fault is known: $/,
]);

for (
  const [hardwareNames, said] of [["no-smart", /^ok .*of which 0 report/], [
    "none",
    /^ok .*does not report/,
  ]] as const
) {
  drivesTest(
    `doctor finds no fault in what a router does not report of its drives: ${hardwareNames}`,
    (scene) => scene.control("PATCH /disks/nvme1", { "percentage-used": 101 }),
    [said],
    { behaviours: { hardwareNames } },
  );
}
