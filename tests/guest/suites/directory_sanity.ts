import assert from "node:assert/strict";
import { join } from "node:path";
import { readReport, suiteArguments } from "../../sanity/suite.ts";
import { csiSocket, driverPorts, routerUser, sshPort, startDriver, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { serveNfs } from "../kit/nfs_server.ts";
import type { Suite } from "../kit/suite.ts";

/** Longest run of csi-sanity, in seconds. */
const limitSeconds = 600;

/** What csi-sanity asks for and a directory cannot give: it has no size that a second request could differ from. */
const impossible = [
  "CreateVolume should fail when requesting to create a volume with already existing name and different capacity",
];

/** csi-sanity against the driver of shared directories, both halves of it, over the kernel's NFS server and client. */
export const suite: Suite = {
  what: "csi-sanity against the driver of shared directories as controller and node",
  limitMinutes: 15,
  needsBinary: true,
  needsGo: true,
  run: async (bench) => {
    const disks = [{ name: "pool", sizeBytes: 4 * 2 ** 30 }];
    const guest = await bench.guest({ ports: driverPorts, disks, modules: ["loop"] });
    const router = await startRouter(guest, {
      disk: guest.disk("pool"),
      flags: ["--pool", "storage-pool", "--pool", "share:64G:xfs:nfs"],
    });
    // The router's files are what clients see, with the share as /share among them.
    const root = `${router.backing}/files`;
    await serveNfs(guest, [`${root} *(rw,no_root_squash,fsid=0,no_subtree_check,insecure)`]);
    const driver = await startDriver(guest, { mode: "node", namespace: "shared", flags: driverFlags });
    const folder = "/var/lib/kubelet/sanity";

    await bench.test("csi-sanity, mounted volumes", async () => {
      const args = suiteArguments({
        endpoint: `unix://${csiSocket}`,
        folder,
        report: "/host/report.xml",
        access: "mount",
      });
      const { stdout, stderr } = await guest.run(
        `mkdir -p ${folder} && exec /opt/tools/csi-sanity ${args.map((word) => `'${word}'`).join(" ")}`,
        { limitSeconds },
      );
      const summary = judge(
        await Deno.readTextFile(join(guest.folder, "host", "report.xml")),
        `${stdout}${stderr}\n${driver.service.tail(100)}`,
      );
      assert.deepEqual(await router.violations(), []);
      return summary;
    });

    await bench.test("nothing is left: no mount and no directory", async () => {
      await assertNothingLeft(guest, folder, root);
      await driver.stop();
      return "no mount, no directory";
    });
  },
};

const driverFlags = [
  ...["--mode", "all", "--kind", "directory", "--base-path", "/share", "--cluster-id", "guest"],
  ...["--rds-address", "127.0.0.1", "--rds-port", `${sshPort}`, "--rds-user", routerUser],
  ...["--rds-password-file", "/etc/rds-csi/password", "--rds-insecure-skip-verify"],
];

/** What the report says; throws when a test failed, or hardly any ran. A directory's impossible test has to fail. */
function judge(xml: string, output: string): string {
  const tests = readReport(xml);
  const of = (outcome: string) => tests.filter((test) => test.outcome === outcome);
  const failed = of("failed").map(({ name }) => name);
  const unexpected = failed.filter((name) => !impossible.some((one) => name.endsWith(one)));
  assert.deepEqual(unexpected, [], output);
  assert.equal(failed.length, impossible.length, "a test passes that could not: take it off the list");
  const reasons = [...new Set(of("skipped").map(({ reason }) => reason))].toSorted();
  assert.ok(of("passed").length > 30, `only ${of("passed").length} tests passed: ${reasons.join("; ")}`);
  return `${of("passed").length} passed, ${failed.length} impossible, ${of("skipped").length} skipped: ${
    reasons.join("; ")
  }`;
}

async function assertNothingLeft(guest: Guest, folder: string, root: string): Promise<void> {
  const mounts = await guest.sh(`grep -e " ${folder}/" -e " nfs4 " /proc/self/mountinfo; :`);
  assert.equal(mounts, "", "mounts are left");
  await guest.until(`[ -d ${root}/share ] && [ -z "$(find ${root}/share -mindepth 1)" ]`, {
    limitSeconds: 120,
  });
}
