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

/** The same with a StorageClass of encrypted volumes. */
export const encryptedSuite: Suite = {
  what: "csi-sanity with encrypted volumes, over the kernel's NVMe/TCP and dm-crypt",
  limitMinutes: 20,
  needsBinary: true,
  needsGo: true,
  run: async (bench) => await trySanity(bench, "mount", "private", encryption),
};

/** Longest run of csi-sanity, in seconds: 200 where nothing else runs. */
const limitSeconds = 900;

/** What csi-sanity passes on, as YAML. A guess of the passphrase costs little, because emulation makes it slow. */
const encryption = {
  secrets: "NodeStageVolumeSecret:\n  encryptionPassphrase: correct horse battery staple\n",
  parameters: 'encrypted: "true"\npbkdfMemory: "32"\npbkdfTime: "100"\n',
};

/** What csi-sanity asks for without the volume's context: a publish that could be of a plain volume is refused. */
const impossible =
  "ControllerPublishVolume should fail when the volume is already published but is incompatible";

async function trySanity(
  bench: Bench,
  access: AccessType,
  namespace: ServiceOptions["namespace"] & string,
  given?: typeof encryption,
): Promise<void> {
  const kind = given === undefined ? access : `encrypted ${access}`;
  const name = `csi-sanity, ${kind} volumes, /dev and the kubelet's folder ${namespace}`;
  await bench.test(name, async () => {
    const disks = [{ name: "pool", sizeBytes: 16 * 2 ** 30 }];
    const guest = await bench.guest({ name: access, ports: driverPorts, disks });
    const router = await startRouter(guest, { disk: guest.disk("pool"), filesystem: "btrfs" });
    const driver = await startDriver(guest, { namespace });
    const folder = `/var/lib/kubelet/sanity-${access}`;
    const report = `/host/report-${access}.xml`;
    const files = { secrets: "/tmp/secrets.yaml", parameters: "/tmp/parameters.yaml" };
    for (const key of ["secrets", "parameters"] as const) {
      if (given !== undefined) await guest.write(files[key], given[key], 0o600);
    }
    const options = { endpoint: `unix://${csiSocket}`, folder, report, access };
    const args = suiteArguments(given === undefined ? options : { ...options, files });
    const { status, stdout, stderr } = await guest.run(
      `mkdir -p ${folder} && exec /opt/tools/csi-sanity ${args.map((word) => `'${word}'`).join(" ")}`,
      { limitSeconds },
    );
    const summary = judge(
      await Deno.readTextFile(join(guest.folder, "host", `report-${access}.xml`)),
      stdout + stderr,
      given === undefined ? [] : [impossible],
    );
    assert.equal(status, given === undefined ? 0 : 1, stdout);
    assert.deepEqual(await router.violations(), []);
    await driver.stop();
    await assertNothingLeft(guest, folder);
    await router.service.stop();
    return summary;
  });
}

/**
 * What the report says; throws when a test failed, or was left out for another reason than that nobody promised it.
 * Those that cannot pass have to fail.
 */
function judge(xml: string, output: string, impossible: readonly string[]): string {
  const tests = readReport(xml);
  const of = (outcome: string) => tests.filter((test) => test.outcome === outcome);
  const failed = of("failed").map(({ name }) => name);
  assert.equal(failed.length, impossible.length, output);
  assert.ok(failed.every((name) => impossible.some((one) => name.endsWith(one))), output);
  const unknown = of("skipped").filter(({ reason }) => !NOT_ADVERTISED.includes(reason));
  assert.deepEqual(unknown, []);
  assert.ok(of("passed").length > 50, `only ${of("passed").length} tests passed`);
  return `${of("passed").length} passed, ${failed.length} impossible, ${of("skipped").length} not advertised`;
}

async function assertNothingLeft(guest: Guest, folder: string): Promise<void> {
  const left = await guest.sh(
    `grep " ${folder}/" /proc/self/mountinfo; cat /sys/class/nvme/*/subsysnqn /sys/block/dm-*/dm/name 2>/dev/null; :`,
  );
  assert.equal(left, "", "mounts, connections or mappings are left");
}
