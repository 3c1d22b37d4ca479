import assert from "node:assert/strict";
import type { GuestOptions } from "../kit/guest.ts";
import type { Bench, Suite } from "../kit/suite.ts";

type Filesystem = "ext4" | "xfs";

/** The demo of the executable, with its permissions, over real NVMe/TCP. */
export const suite: Suite = {
  what: "rds-csi demo --connector nvme-tcp, by the executable with its permissions",
  limitMinutes: 20,
  needsBinary: true,
  run: async (bench) => {
    await tryDemos(bench, { multipath: true }, ["ext4", "xfs"]);
    await tryDemos(bench, { multipath: false }, ["ext4", "xfs"]);
    await tryDemos(bench, { kernel: "backports" }, ["ext4"]);
  },
};

async function tryDemos(
  bench: Bench,
  options: GuestOptions,
  filesystems: readonly Filesystem[],
): Promise<void> {
  const guest = await bench.guest({ ...options, memoryMiB: 3072 });
  const version = await guest.sh("uname -r");
  const multipath = await guest.sh("cat /sys/module/nvme_core/parameters/multipath");
  for (const filesystem of filesystems) {
    await bench.test(`demo, ${filesystem} and block, Linux ${version}, multipath ${multipath}`, async () => {
      const { status, stdout, stderr } = await guest.run(
        `exec /opt/tools/rds-csi demo --connector nvme-tcp --filesystem ${filesystem} --data 8 --timing-scale 0`,
        { limitSeconds: 400 },
      );
      assert.equal(status, 0, stdout + stderr);
      assert.match(stdout, /^demo: ok$/m);
      for (const kind of [filesystem, "block"]) {
        assert.match(stdout, new RegExp(`^${kind}: NodeExpandVolume `, "m"));
      }
      const left = await guest.sh(
        "grep rds-csi-demo /proc/self/mountinfo; ls -d /tmp/rds-csi-demo* /sys/class/nvme/*/subsysnqn /sys/kernel/config/nvmet/subsystems/* 2>/dev/null; :",
      );
      assert.equal(left, "", "mounts, folders or connections are left");
      const times = [...stdout.matchAll(/: NodeStageVolume +(\d+)/g)].map(([, milliseconds]) =>
        `${milliseconds} ms`
      );
      return `demo: ok; stages took ${times.join(", ")}`;
    });
  }
  await guest.end();
}
