import assert from "node:assert/strict";
import { codeOf } from "../../../../src/csi/server/client.ts";
import { type Driver, startDriver } from "../../kit/driver.ts";
import type { Guest } from "../../kit/guest.ts";
import type { Bench } from "../../kit/suite.ts";
import type { Stamping, Writer } from "../writers/writer.ts";

const id = "pvc-0f7ac1de-5b0e-4c6b-9d55-0123456789ab";
const nqn = `nqn.2000-02.com.mikrotik:${id}`;
const staging = `/var/lib/kubelet/plugins/kubernetes.io/csi/earlier/${id}`;
const target = `/var/lib/kubelet/pods/earlier/${id}`;
const port = 4421;
const hostId = "4c1ecf6c-0f0d-4c1e-8f3c-0123456789ab";
const stop = "/run/stop-earlier";
/** The fastest that the node looks for what is fenced, and how many looks pass in a test. */
const fenceFlags = ["--fence-interval", "1s", "--fence-settle-time", "3s"];
const reads = 5;

/** How a workload has the device of a volume. */
type Use = "bound and open" | "bound" | "open";

/** A raw block volume as the legacy driver left it: no state, nothing in the staging folder, an NQN without an epoch. */
export async function tryLegacyVolumes(bench: Bench, guest: Guest, stamping: Stamping): Promise<void> {
  await guest.sh(
    `mkdir -p ${staging} $(dirname ${target}) && touch ${target}
     dd if=/dev/zero of=/tmp/earlier.img bs=1M count=32 status=none
     cd /sys/kernel/config/nvmet
     mkdir subsystems/${nqn}; echo 1 > subsystems/${nqn}/attr_allow_any_host
     mkdir subsystems/${nqn}/namespaces/1
     echo 1 > subsystems/${nqn}/namespaces/1/buffered_io
     echo -n /tmp/earlier.img > subsystems/${nqn}/namespaces/1/device_path
     echo 1 > subsystems/${nqn}/namespaces/1/enable
     mkdir ports/1; echo tcp > ports/1/addr_trtype; echo ipv4 > ports/1/addr_adrfam
     echo 127.0.0.1 > ports/1/addr_traddr; echo ${port} > ports/1/addr_trsvcid`,
  );
  for (const use of ["bound and open", "bound", "open"] as const) {
    await bench.test(
      `a raw block volume of the legacy driver, ${use}, outlives starts, kills, the look for fences and unstage`,
      () => tryUse(guest, stamping, use),
    );
  }
  await bench.test("the same when its export is withdrawn: it may come back", () =>
    tryWithdrawn(guest, stamping));
}

async function tryUse(guest: Guest, stamping: Stamping, use: Use): Promise<string> {
  const device = await connect(guest);
  const writer = await take(guest, stamping, use, device);
  const before = await connection(guest);
  let driver = await startDriver(guest, { mode: "node", flags: fenceFlags });
  for (const end of use === "bound and open" ? ["kill", "stop"] as const : ["kill"] as const) {
    const refused = await stayingThrough(guest, driver, writer);
    assert.equal(refused, "FAILED_PRECONDITION");
    assert.equal(await connection(guest), before);
    await driver[end]();
    driver = await startDriver(guest, { mode: "node", flags: fenceFlags });
  }
  const writes = await release(guest, writer);
  await unstage(driver);
  assert.equal(await connection(guest), "", "it is connected though nobody uses it");
  await driver.stop();
  return `refused while it was ${use}; ${writes}; unstaged when nobody had it any more`;
}

async function tryWithdrawn(guest: Guest, stamping: Stamping): Promise<string> {
  const device = await connect(guest);
  const writer = await take(guest, stamping, "bound and open", device);
  const driver = await startDriver(guest, { mode: "node", flags: fenceFlags });
  await guest.sh(`rm /sys/kernel/config/nvmet/ports/1/subsystems/${nqn}`);
  await guest.until(`cat /sys/class/nvme/*/state | grep -q connecting`, { limitSeconds: 30 });
  const refused = await stayingThrough(guest, driver, undefined);
  assert.ok(["FAILED_PRECONDITION", "UNAVAILABLE"].includes(refused ?? ""), refused);
  await link(guest);
  await guest.until(`cat /sys/class/nvme/*/state | grep -q live`, { limitSeconds: 60 });
  await writer?.progresses();
  const writes = await release(guest, writer);
  await unstage(driver);
  await driver.stop();
  return `${refused} while it was away; ${writes}`;
}

/**
 * As `nvme connect` does by hand, without a word about who connects. The package of the tool writes who that is; without it newer
 * kernels refuse the tool's NQN, which has another id than the kernel's own.
 */
async function connect(guest: Guest): Promise<string> {
  await link(guest);
  await guest.sh(
    `mkdir -p /etc/nvme; echo ${hostId} > /etc/nvme/hostid
     echo nqn.2014-08.org.nvmexpress:uuid:${hostId} > /etc/nvme/hostnqn`,
  );
  await guest.sh(`nvme connect -t tcp -a 127.0.0.1 -s ${port} -n ${nqn} --reconnect-delay=1`);
  const find = `for one in /sys/class/nvme-subsystem/*; do
    if [ "$(cat $one/subsysnqn)" = ${nqn} ]; then ls $one | grep -E '^nvme[0-9]+n[0-9]+$'; fi
  done`;
  await guest.until(`${find} | grep -q nvme`, { limitSeconds: 20 });
  return `/dev/${await guest.sh(find)}`;
}

async function link(guest: Guest): Promise<void> {
  await guest.sh(
    `[ -e /sys/kernel/config/nvmet/ports/1/subsystems/${nqn} ] ||
      ln -s /sys/kernel/config/nvmet/subsystems/${nqn} /sys/kernel/config/nvmet/ports/1/subsystems/${nqn}`,
  );
}

async function take(
  guest: Guest,
  stamping: Stamping,
  use: Use,
  device: string,
): Promise<Writer | undefined> {
  await guest.sh(`rm -f ${stop}`);
  if (use !== "open") await guest.sh(`mount --bind ${device} ${target}`);
  if (use === "bound") return undefined;
  const writer = await stamping.verify(guest, use === "open" ? device : target, "earlier", stop);
  await writer.progresses();
  return writer;
}

/** Lets some looks pass, asks for an unstage, and answers how that was refused. */
async function stayingThrough(guest: Guest, driver: Driver, writer?: Writer): Promise<string | undefined> {
  await new Promise((resolve) => setTimeout(resolve, reads * 1000));
  const refused = await unstage(driver).then(() => "OK", codeOf);
  await writer?.progresses();
  assert.ok(driver.service.isRunning, driver.service.tail());
  assert.notEqual(await connection(guest), "");
  return refused;
}

async function unstage(driver: Driver): Promise<void> {
  await driver.clients.node.call("NodeUnstageVolume", { volumeId: id, stagingTargetPath: staging });
}

/** Ends the workload; answers what it wrote. */
async function release(guest: Guest, writer: Writer | undefined): Promise<string> {
  await guest.sh(`touch ${stop}; ! grep -q ' ${target} ' /proc/self/mountinfo || umount -l ${target}`);
  if (writer === undefined) return "no writer";
  await writer.end();
  return `${writer.acknowledged} writes without an error`;
}

/** Which controller it is, with the number that a new connection would not have. */
async function connection(guest: Guest): Promise<string> {
  return await guest.sh(
    `for one in /sys/class/nvme/nvme*; do
       [ "$(cat $one/subsysnqn)" != ${nqn} ] || echo "\${one##*/} $(cat $one/cntlid)"
     done 2> /dev/null; :`,
  );
}
