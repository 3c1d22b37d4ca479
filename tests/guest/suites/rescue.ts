import assert from "node:assert/strict";
import type { Guest } from "../kit/guest.ts";
import type { Bench, Suite } from "../kit/suite.ts";

const prefix = "nqn.2000-02.com.mikrotik";
const nqn = `${prefix}:pvc-1:1-0a0b0c0d`;
const at = "--nvme-address 127.0.0.1 --nvme-port 4420";
const state = "/var/lib/kubelet/plugins/rds.csi.srvlab.io/state";

/** The commands for a node, against the kernel's own target and initiator. */
export const suite: Suite = {
  what: "doctor, describe, attach and detach over real NVMe/TCP",
  limitMinutes: 10,
  needsBinary: true,
  run: async (bench) => {
    const disk = { sizeBytes: 64 << 20 };
    const guest = await bench.guest({ disks: [{ ...disk, name: "alive" }, { ...disk, name: "crashed" }] });
    await crash(guest);
    await exportDisk(guest, guest.disk("crashed"));
    await attaching(bench, guest);
    await foreignHost(bench, guest);
  },
};

/** A file system whose log has to be replayed: a copy of one that is mounted. */
async function crash(guest: Guest): Promise<void> {
  const env = { alive: guest.disk("alive"), crashed: guest.disk("crashed") };
  await guest.sh(
    `mkdir -p /mnt/alive ${state}; mkfs.ext4 -q $alive; mount $alive /mnt/alive
     echo precious > /mnt/alive/file; umount /mnt/alive; mount $alive /mnt/alive
     touch /mnt/alive/later; sync
     dd if=$alive of=$crashed bs=1M conv=fsync status=none; umount /mnt/alive`,
    { env },
  );
}

async function exportDisk(guest: Guest, disk: string): Promise<void> {
  await guest.sh(
    `cd /sys/kernel/config/nvmet
     mkdir subsystems/$nqn; echo 1 > subsystems/$nqn/attr_allow_any_host
     mkdir subsystems/$nqn/namespaces/1; echo -n $disk > subsystems/$nqn/namespaces/1/device_path
     echo 1 > subsystems/$nqn/namespaces/1/enable
     mkdir ports/1; echo tcp > ports/1/addr_trtype; echo ipv4 > ports/1/addr_adrfam
     echo 127.0.0.1 > ports/1/addr_traddr; echo 4420 > ports/1/addr_trsvcid
     ln -s /sys/kernel/config/nvmet/subsystems/$nqn ports/1/subsystems/`,
    { env: { nqn, disk } },
  );
}

interface Outcome {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const rds = (guest: Guest, args: string): Promise<Outcome> =>
  guest.run(`/opt/tools/rds-csi ${args}`, { env: { NODE_ID: "node-1" } });

interface Found {
  readonly check: string;
  readonly state: string;
  readonly found: string;
}

async function doctor(guest: Guest): Promise<(check: string) => Found> {
  const { stdout, stderr } = await rds(guest, `doctor --json ${at}`);
  assert.equal(stderr, "");
  const findings: readonly Found[] = JSON.parse(stdout);
  return (check) => findings.find((each) => each.check === check) ?? assert.fail(`${check}: ${stdout}`);
}

async function attaching(bench: Bench, guest: Guest): Promise<void> {
  const digest = () => guest.sh("sha256sum < $disk", { env: { disk: guest.disk("crashed") } });
  const before = await digest();
  await bench.test("doctor finds the transport, the target and its export", async () => {
    const of = await doctor(guest);
    for (const check of ["nvme-transport", "nvme-multipath", "dev", "state-dir", "connections"]) {
      assert.equal(of(check).state, "ok", of(check).found);
    }
    assert.match(of("nvme-target").found, /offers this host 1 of this driver's exports$/);
    return of("nvme-target").found;
  });
  await bench.test("attach gives a device that takes no write, and shows what is on it", async () => {
    const { status, stdout, stderr } = await rds(guest, `attach pvc-1 ${at} --json`);
    assert.equal(status, 0, stderr);
    const report = JSON.parse(stdout);
    assert.deepEqual([report.nqn, report.readOnly, report.signatures.TYPE], [nqn, true, "ext4"]);
    const env = { device: report.device };
    assert.equal((await guest.sh("blockdev --getro $device", { env })).trim(), "1");
    assert.notEqual(
      (await guest.run("dd if=/dev/zero of=$device count=1 conv=nocreat,fsync", { env })).status,
      0,
    );
    await guest.sh(report.mount);
    assert.equal((await guest.sh("cat /mnt/pvc-1/file")).trim(), "precious");
    return report.mount;
  });
  await bench.test("doctor and describe know the attached volume", async () => {
    const of = await doctor(guest);
    assert.match(of("volumes").found, /^pvc-1: NoState: /);
    assert.deepEqual([of("connections").state, of("nvme-timeouts").state], ["ok", "ok"]);
    const { status, stdout } = await rds(guest, "describe pvc-1");
    assert.equal(status, 0, stdout);
    assert.match(stdout, /^mount +\/mnt\/pvc-1 \(elsewhere\): ext4/m);
    return of("nvme-timeouts").found;
  });
  await bench.test("detach refuses while it is mounted, and leaves nothing afterwards", async () => {
    const refused = await rds(guest, "detach pvc-1");
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /is mounted at \/mnt\/pvc-1/);
    await guest.sh("umount /mnt/pvc-1");
    const { status, stderr } = await rds(guest, "detach pvc-1");
    assert.equal(status, 0, stderr);
    assert.equal((await rds(guest, "detach pvc-1")).status, 3);
    assert.equal((await guest.sh("ls /sys/class/nvme")).trim(), "");
    assert.equal(await digest(), before, "not a byte of the disk is another");
    return refused.stderr.trim();
  });
}

async function foreignHost(bench: Bench, guest: Guest): Promise<void> {
  await bench.test("a connection that somebody made as another host is reported, and not attached over", async () => {
    await guest.sh(
      "nvme connect -t tcp -a 127.0.0.1 -s 4420 -n $nqn --hostnqn=$host:uuid:$id --hostid=$id --config=none",
      { env: { nqn, host: "nqn.2014-08.org.nvmexpress", id: "11111111-2222-4333-8444-555555555555" } },
    );
    const finding = (await doctor(guest))("connections");
    assert.equal(finding.state, "problem");
    assert.match(finding.found, /connected as another host: .*5555$/);
    const attach = await rds(guest, `attach pvc-1 ${at}`);
    assert.equal(attach.status, 1);
    assert.match(attach.stderr, /connected here already/);
    const existing = await rds(guest, "attach pvc-1 --existing");
    assert.equal(existing.status, 0, existing.stderr);
    assert.match(existing.stdout, /^writes +accepted/m);
    assert.equal((await rds(guest, "detach pvc-1")).status, 0);
    return finding.found;
  });
}
