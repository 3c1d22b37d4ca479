import assert from "node:assert/strict";
import { join } from "node:path";
import { type AccessType, NOT_ADVERTISED, readReport, suiteArguments } from "../../sanity/suite.ts";
import { csiSocket, driverPorts, startDriver, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import type { ServiceOptions } from "../kit/service.ts";
import type { Bench, Suite } from "../kit/suite.ts";

/** csi-sanity over real NVMe/TCP, in two guests at once. */
export const suite: Suite = {
  what: "csi-sanity against the executable as controller and node, over the kernel's NVMe/TCP",
  limitMinutes: 20,
  alone: true,
  needsBinary: true,
  needsGo: true,
  run: async (bench) => {
    await Promise.all([trySanity(bench, "mount", "shared"), trySanity(bench, "block", "private")]);
  },
};

/** Longest run of csi-sanity, in seconds: 200 where nothing else runs. */
const limitSeconds = 900;

async function trySanity(
  bench: Bench,
  access: AccessType,
  namespace: ServiceOptions["namespace"] & string,
): Promise<void> {
  const name = `csi-sanity, ${access} volumes, /dev and the kubelet's folder ${namespace}`;
  await bench.test(name, async () => {
    const disks = [{ name: "pool", sizeBytes: 16 * 2 ** 30 }];
    const guest = await bench.guest({ name: access, ports: driverPorts, disks });
    const router = await startRouter(guest, { disk: guest.disk("pool"), filesystem: "btrfs" });
    const driver = await startDriver(guest, { namespace });
    const folder = `/var/lib/kubelet/sanity-${access}`;
    const report = `/host/report-${access}.xml`;
    const args = suiteArguments({ endpoint: `unix://${csiSocket}`, folder, report, access });
    const { status, stdout, stderr } = await guest.run(
      `mkdir -p ${folder} && exec /opt/tools/csi-sanity ${args.map((word) => `'${word}'`).join(" ")}`,
      { limitSeconds },
    );
    const summary = judge(
      await Deno.readTextFile(join(guest.folder, "host", `report-${access}.xml`)),
      stdout + stderr,
    );
    assert.equal(status, 0, stdout);
    assert.deepEqual(await router.violations(), []);
    await driver.stop();
    await assertNothingLeft(guest, folder);
    await router.service.stop();
    return summary;
  });
}

/** What the report says; throws when a test failed, or was left out for another reason than that nobody promised it. */
function judge(xml: string, output: string): string {
  const tests = readReport(xml);
  const of = (outcome: string) => tests.filter((test) => test.outcome === outcome);
  assert.deepEqual(of("failed").map(({ name }) => name), [], output);
  const unknown = of("skipped").filter(({ reason }) => !NOT_ADVERTISED.includes(reason));
  assert.deepEqual(unknown, []);
  assert.ok(of("passed").length > 50, `only ${of("passed").length} tests passed`);
  return `${of("passed").length} passed, 0 failed, ${of("skipped").length} not advertised`;
}

async function assertNothingLeft(guest: Guest, folder: string): Promise<void> {
  const left = await guest.sh(
    `grep " ${folder}/" /proc/self/mountinfo; cat /sys/class/nvme/*/subsysnqn 2>/dev/null; :`,
  );
  assert.equal(left, "", "mounts and connections are left");
}
