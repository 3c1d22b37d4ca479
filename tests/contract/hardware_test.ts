// The health of the router's arrays and drives: read by the controller's loop over SSH, and shown by its metrics, its status
// page and the health of volumes without another command.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { aPersistentVolume, aVolumeAttachment } from "../fakes/kube_client.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { changesNothing, cost, create, publishRequest } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";
import { type Stack, type StackOptions, startStack } from "../support/stack.ts";
import { turningClock } from "../support/turning_clock.ts";

interface Scene {
  readonly stack: Stack;
  /** Lets the controller read once. */
  turn(): Promise<void>;
  /** Lets it read once, and waits for that. */
  read(): Promise<void>;
  /** Arms a fault of the router. */
  strike(fault: Readonly<Record<string, unknown>>): Promise<void>;
  patch(path: string, body: unknown): Promise<void>;
  /** The lines of the metrics of that name. */
  metrics(name: string): Promise<readonly string[]>;
  page(): Promise<string>;
}

async function withScene(options: StackOptions, test: (scene: Scene) => Promise<void>): Promise<void> {
  const { clock, turn } = turningClock();
  // An audit rests as long.
  const flags = ["--audit-interval", "0s", ...options.flags ?? []];
  await using stack = await startStack({ ...options, flags, clock });
  const { metricsUrl } = stack.driver;
  const metrics = async (name: string) =>
    (await (await fetch(`${metricsUrl}/metrics`)).text()).split("\n").filter((line) => line.startsWith(name));
  const time = async () => (await metrics("rds_csi_hardware_timestamp_seconds")).join();
  await test({
    stack,
    turn,
    async read() {
      const before = await time();
      await turn();
      await eventually(async () => await time() !== before);
    },
    patch: async (path, body) => void await control(stack.simulator, `PATCH ${path}`, body),
    strike: async (fault) => void await control(stack.simulator, "POST /faults", fault),
    metrics,
    page: async () =>
      (await (await fetch(metricsUrl!)).text()).replace(/<style>.*<\/style>/s, "").replace(/<[^>]*>/g, " ")
        .replace(/\s+/g, " "),
  });
}

async function healthOf({ clients }: Stack, volumeId: string): Promise<string[]> {
  const { volumeHealth } = await clients.controller.call("ControllerGetVolumeHealth", { volumeId });
  return volumeHealth!.healthStatuses.map(({ status, reason, message }) => `${status} ${reason} ${message}`);
}

async function problemsOf({ metrics }: Scene): Promise<string[]> {
  const lines = await metrics("rds_csi_hardware_problems{");
  return lines.map((line) =>
    ["severity", "reason", "slot", "pool"].map((label) => new RegExp(`\\b${label}="([^"]*)"`).exec(line)?.[1])
      .join(" ")
  ).toSorted();
}

Deno.test("a failed member, a lost Btrfs device and a worn drive show in metrics, page and volumes' health", async () => {
  await withScene({}, async (scene) => {
    const { stack, read, patch, metrics, page } = scene;
    const id = await create(stack, "pvc-1");
    await read();
    assert.deepEqual([await problemsOf(scene), await healthOf(stack, id)], [[], []]);
    const used = await metrics("rds_csi_drive_used_ratio{");
    assert.deepEqual(used.map((line) => line.split(" ").at(-1)), ["0.01", "0.01"]);
    assert.match(
      await page(),
      /Arrays and drives read .* nvme1 SAMSUNG.* storage-pool 0:in_sync 1 % 100 % 38 °C no problem known/,
    );

    await patch("/disks/nvme1", { "raid-member-failed": true });
    await patch("/disks/nvme2", { "percentage-used": 101, "io-errors": 4 });
    await patch("/filesystems/storage-pool-fs", { devs: ["storage-pool", "missing"] });
    await read();
    assert.deepEqual(await problemsOf(scene), [
      "critical BtrfsDeviceMissing storage-pool storage-pool",
      "critical MemberFailed nvme1 storage-pool",
      "warning DriveWorn nvme2 storage-pool",
      "warning ErrorsRose nvme2 storage-pool",
    ]);
    const drive = "nvme1 \\(SAMSUNG MZWLO7T6HBLA-00A07, serial S794NC0W100001\\)";
    const said = new RegExp(
      `^DEGRADED PoolDegraded ${drive} has failed .*; a device of the Btrfs .* is missing$`,
    );
    await changesNothing(stack, async () => {
      const [problem = "", ...others] = await healthOf(stack, id);
      assert.match(problem, said);
      assert.deepEqual(others, []);
      const { entries } = await stack.clients.controller.call("ControllerListVolumeHealth", {});
      assert.deepEqual(entries.map(({ volumeId }) => volumeId), [id]);
    });
    const shown = await page();
    for (
      const words of [
        "MemberFailed",
        "BtrfsDeviceMissing",
        "DriveWorn",
        "has used 101 % of its expected life",
      ]
    ) {
      assert.ok(shown.includes(words), `${words} is not in: ${shown}`);
    }
    // What is known of drives comes from memory.
    assert.equal(await cost(stack, () => healthOf(stack, id)), 1);
    assert.equal(await cost(stack, () => stack.clients.controller.call("ControllerListVolumeHealth", {})), 2);
    assert.equal(await cost(stack, page), 0);

    await patch("/disks/nvme1", { "raid-member-failed": false });
    await patch("/filesystems/storage-pool-fs", { devs: null });
    await read();
    assert.deepEqual([await problemsOf(scene), await healthOf(stack, id)], [[
      "warning DriveWorn nvme2 storage-pool",
    ], []]);
  });
});

Deno.test("a degraded mirror below a stripe, and a drive that is read-only, degrade the volumes on it", async () => {
  await withScene({ simulator: { profile: "xfs-pool" } }, async (scene) => {
    const { stack, read, patch } = scene;
    const id = await create(stack, "pvc-1");
    await patch("/disks/storage-pool-m2", { state: "degraded, sync:recover, recovery = 3%" });
    await patch("/disks/nvme8", { "critical-warning": ["read-only"] });
    await read();
    assert.deepEqual(await problemsOf(scene), [
      "critical ArrayUnsound storage-pool-m2 storage-pool",
      "critical DriveReadOnly nvme8 storage-pool",
    ]);
    assert.deepEqual((await healthOf(stack, id)).map((text) => text.split(" ").slice(0, 3).join(" ")), [
      "DEGRADED PoolDegraded the",
      "DEGRADED DriveFailing nvme8",
    ]);
    assert.ok(!stack.simulator.journal.list().some(({ command }) => command.includes("btrfs")), "XFS alone");
  });
});

for (const hardwareNames of ["no-smart", "none"] as const) {
  Deno.test(`what a router does not report of its drives (${hardwareNames}) is unknown, and never a problem`, async () => {
    await withScene({ simulator: { behaviours: { hardwareNames } } }, async (scene) => {
      const { stack, read, patch, metrics, page } = scene;
      await patch("/disks/nvme1", {
        "critical-warning": ["read-only"],
        "percentage-used": 120,
        ...hardwareNames === "none" ? { "raid-member-failed": true } : {},
      });
      const id = await create(stack, "pvc-1");
      await read();
      assert.deepEqual([await problemsOf(scene), await healthOf(stack, id)], [[], []]);
      const ofDrives = (await metrics("rds_csi_drive_")).filter((line) => line.includes("nvme"));
      assert.deepEqual(ofDrives, []);
      assert.match(
        await page(),
        hardwareNames === "none" ? /The router does not report them/ : /0:in_sync – – –/,
      );
      assert.deepEqual(
        stack.log.filter((line) => line.includes('"level":"warn"') && line.includes("health")),
        [],
      );
      if (hardwareNames === "none") return;
      await patch("/disks/nvme1", { "raid-member-failed": true });
      await read();
      assert.deepEqual(await problemsOf(scene), ["critical MemberFailed nvme1 storage-pool"]);
    });
  });
}

Deno.test("drives are read alike where a router prints numbers as words, and noise first", async () => {
  await withScene({ simulator: { behaviours: { output: "hostile" } } }, async (scene) => {
    await scene.patch("/disks/nvme1", { "raid-member-failed": true });
    await scene.patch("/disks/nvme2", { "percentage-used": 101 });
    await scene.patch("/filesystems/storage-pool-fs", { devs: ["storage-pool", "missing"] });
    await scene.read();
    assert.deepEqual(await problemsOf(scene), [
      "critical BtrfsDeviceMissing storage-pool storage-pool",
      "critical MemberFailed nvme1 storage-pool",
      "warning DriveWorn nvme2 storage-pool",
    ]);
  });
});

Deno.test("an answer about drives that is lost or cut is no refusal of their names", async () => {
  await withScene({}, async (scene) => {
    const { stack, turn, read, patch, strike } = scene;
    await patch("/disks/nvme1", { "critical-warning": ["read-only"] });
    await patch("/filesystems/storage-pool-fs", { devs: ["storage-pool", "missing"] });
    await read();
    const found = [
      "critical BtrfsDeviceMissing storage-pool storage-pool",
      "critical DriveReadOnly nvme1 storage-pool",
    ];
    assert.deepEqual(await problemsOf(scene), found);
    const lost = [
      ...[{ action: "drop-after" }, { action: "truncate", value: 100 }],
      { action: "truncate", value: "sentinel" },
    ];
    const faults = ["percentage-used", "btrfs/filesystem"].flatMap((match) =>
      lost.map((way) => ({ ...way, match }))
    );
    for (const [index, fault] of faults.entries()) {
      await strike(fault);
      await turn();
      const warned = () =>
        stack.log.filter((line) => line.includes("cannot read the health of drives")).length;
      await eventually(() => Promise.resolve(warned() === index + 1));
      assert.deepEqual(await problemsOf(scene), found, JSON.stringify(fault));
    }
    const asked = stack.simulator.journal.list().map(({ command }) => command)
      .filter((command) => command.includes("raid-member-state"));
    assert.ok(
      asked.every((command) => command.includes("percentage-used")),
      "never without the names of SMART",
    );
    await read();
    assert.deepEqual(await problemsOf(scene), found);
  });
});

Deno.test("a router that does not answer the reading serves all calls meanwhile", async () => {
  const { clock, turn } = turningClock();
  const timers = {
    ...clock,
    timer: (ms: number, act: () => void) => clock.timer(ms === 20_000 ? 300 : ms, act),
  };
  await using stack = await startStack({ clock: timers, flags: ["--audit-interval", "0s"] });
  const fault = { action: "hang", match: "percentage-used", times: "always" };
  await control(stack.simulator, "POST /faults", fault);
  await create(stack, "pvc-1");
  await turn();
  const warned = () => stack.log.some((line) => line.includes("cannot read the health of drives"));
  await eventually(() => Promise.resolve(warned()));
  await create(stack, "pvc-2");
  assert.ok(!stack.log.some((line) => line.includes("router breaker")), "the breaker stays closed");
  assert.equal(stack.log.filter((line) => line.includes("router connection: ready")).length, 1);
});

Deno.test("only the controller that leads reads drives, and a fault is an event on the claim of a volume in use", async () => {
  const { clock, turn } = turningClock();
  const flags = ["--leader-election", "--audit-interval=0s"];
  await using cluster = await startClusterStack({ flags, clock });
  const { api, stack } = cluster;
  const linesAt = async (url: string | undefined) =>
    (await (await fetch(`${url}/metrics`)).text()).split("\n");
  await eventually(async () => (await linesAt(stack.driver.metricsUrl)).includes("rds_csi_leader 1"));
  const other = await stack.another([], clock);
  const [used, idle] = [await create(stack, "pvc-used"), await create(stack, "pvc-idle")];
  for (const id of [used, idle]) api.put(volumesPath, aPersistentVolume(id));
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(used, "worker-1"));
  api.put("/apis/storage.k8s.io/v1/volumeattachments", aVolumeAttachment(used, "worker-1"));
  await control(stack.simulator, "PATCH /disks/nvme1", { "raid-member-failed": true });
  const problemsAt = async (url: string | undefined) =>
    (await linesAt(url)).filter((line) => line.startsWith("rds_csi_hardware_problems{")).length;
  const told = () =>
    api.all("/api/v1/namespaces/apps/events").filter(({ reason }) => reason === "PoolDegraded");
  // The health of volumes is read in every fifth round.
  await eventually(async () => {
    await turn();
    return told().length > 0;
  }, 60_000);
  assert.match(String(told()[0]!["message"]), /^nvme1 \(SAMSUNG .*, serial .*\) has failed as a member/);
  assert.equal(told().length, 1);
  assert.deepEqual([await problemsAt(stack.driver.metricsUrl), await problemsAt(other.driver.metricsUrl)], [
    1,
    0,
  ]);
});
