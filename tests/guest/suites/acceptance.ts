import assert from "node:assert/strict";
import { systemClock } from "../../../src/host/clock.ts";
import { systemRandom } from "../../../src/host/random.ts";
import { parseReport } from "../../../src/router_profile/report/report.ts";
import { describeDifferences, replayReport } from "../../../src/simulator/replay/replay.ts";
import { routerHostKey } from "../../fakes/ssh_keys.ts";
import { driverPorts, type Router, routerPassword, routerUser, sshPort, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { keptFolder, type Suite } from "../kit/suite.ts";

const folder = "storage-pool/acceptance";
const runSeconds = 2400;

/** The acceptance run of the executable, with the kernel as the host of every export, after one that was killed, and with a reboot. */
export const suite: Suite = {
  what:
    "rds-csi acceptance over the kernel's NVMe/TCP, after one that was killed, with a reboot of the router, and its replay",
  limitMinutes: 45,
  needsBinary: true,
  run: async (bench) => {
    const guest = await bench.guest({
      memoryMiB: 3072,
      ports: driverPorts,
      disks: [{ name: "pool", sizeBytes: 16 * 2 ** 30 }],
    });
    // Making a key takes long in software emulation.
    await guest.write("/tmp/host-key", routerHostKey.privatePem, 0o600);
    // With a real router's delays: the time that the run takes is reported.
    const flags = ["--base-path", `/${folder}`, "--host-key", "/tmp/host-key", "--timing-scale", "1"];
    const router = await startRouter(guest, { disk: guest.disk("pool"), filesystem: "btrfs", flags });
    const body = JSON.stringify({ command: `/file add type="directory" name="${folder}"` });
    await router.control("/console", { method: "POST", body });
    await guest.sh(`mkdir -p /etc/rds-csi && printf %s ${routerPassword} > /etc/rds-csi/password`);
    await bench.test("a run that is killed with a volume in use leaves it mounted and connected", async () => {
      await killInUse(guest, router);
      const left = await leftHere(guest);
      for (const what of ["/staging", "subsysnqn"]) assert.ok(left.includes(what), left);
      return left.trim().replaceAll("\n", "; ");
    });
    let json = "";
    await bench.test("every promise holds, and nothing is left, of the killed run neither", async () => {
      const { status, lines } = await acceptance(guest, router);
      json = await guest.sh("cat /tmp/report/report.json");
      // For tests/captures/reports, when it is to be renewed.
      await Deno.mkdir(keptFolder, { recursive: true });
      await Deno.writeTextFile(`${keptFolder}/acceptance.json`, json);
      const { steps } = parseReport(json);
      const failed = steps.filter(({ result }) => result !== "pass").map(({ step, result, note }) =>
        `${result} ${step}: ${note}`
      );
      assert.deepEqual(failed, [], lines.join("\n"));
      assert.equal(status, 0, lines.join("\n"));
      assert.equal(await leftHere(guest), "", "mounts, folders or connections are left");
      assert.deepEqual(await router.violations(), []);
      const seconds = Math.round(steps.reduce((sum, { ms }) => sum + ms, 0) / 1000);
      const notes = steps.filter(({ note }) => note !== "").map(({ step, note }) => `${step}: ${note}`);
      return [`${seconds} s`, ...notes].join("; ");
    });
    await bench.test("the report has no name, address or secret, and its replay no difference", async () => {
      for (const known of [routerPassword, `"${routerUser}"`, "127.0.0.1", "storage-pool"]) {
        assert.ok(!json.includes(known), known);
      }
      const report = parseReport(json);
      const differences = await replayReport(report, { clock: systemClock, random: systemRandom });
      assert.deepEqual(describeDifferences(differences), []);
      return `${report.transcript.length} entries`;
    });
    await guest.end();
  },
};

function commandOf(router: Router, output: string, data: string): string {
  return `/opt/tools/rds-csi acceptance --base-path /${folder} --output ${output} --yes --data ${data} \
    --rds-address 127.0.0.1 --rds-port ${sshPort} --rds-user ${routerUser} --nvme-address ${router.address} \
    --rds-password-file /etc/rds-csi/password --rds-insecure-skip-verify`;
}

/** What runs have here: mounts, folders, and connections. */
async function leftHere(guest: Guest): Promise<string> {
  return await guest.sh(
    "grep rds-csi-acceptance /proc/self/mountinfo; ls -d /tmp/rds-csi-acceptance* /sys/class/nvme/*/subsysnqn 2>/dev/null; :",
  );
}

/** Runs it, and ends it by SIGKILL while a volume is mounted. */
async function killInUse(guest: Guest, router: Router): Promise<void> {
  let killing: Promise<unknown> | undefined;
  const { status } = await guest.run(
    `echo $$ > /tmp/run.pid; exec ${commandOf(router, "/tmp/killed", "16Mi")}`,
    {
      limitSeconds: runSeconds,
      onLine: (line) => {
        if (line.includes("ext4: snapshot in use")) killing ??= guest.sh("kill -KILL $(cat /tmp/run.pid)");
      },
    },
  );
  assert.ok(killing, `it ended with ${status} before`);
  await killing;
}

/** Runs it, and reboots the router when it asks for that. */
async function acceptance(
  guest: Guest,
  router: Router,
): Promise<{ status: number | undefined; lines: string[] }> {
  const lines: string[] = [];
  let rebooting: Promise<void> | undefined;
  const reboot = async () => {
    // The run has read the router's uptime by then.
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    const body = JSON.stringify({ downMs: 5000, disksLateMs: 3000 });
    await router.control("/reboot", { method: "POST", body });
    await guest.sh("echo > /tmp/answers");
  };
  await guest.sh("mkfifo /tmp/answers");
  const { status } = await guest.run(
    `exec 3<>/tmp/answers; exec ${commandOf(router, "/tmp/report", "256Mi")} --reboot ask <&3`,
    {
      limitSeconds: runSeconds,
      onLine: (line) => {
        lines.push(line);
        if (line.includes("acceptance: reboot: settle time")) rebooting ??= reboot();
      },
    },
  );
  await rebooting;
  return { status, lines };
}
