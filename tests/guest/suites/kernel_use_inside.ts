import assert from "node:assert/strict";
import {
  callWithin,
  commandByHand,
  connectByHand,
  type GuestNode,
  GuestVolume,
  NodeTests,
  ownHost,
  refusal,
  sh,
  shell,
  timed,
  until,
} from "../kit/node.ts";
import { block, call, ext4 } from "../../node/harness.ts";

const small = 32n << 20n;
const otherHost = "--hostnqn=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555 " +
  "--hostid=11111111-2222-4333-8444-555555555555";

async function names(node: GuestNode, volume: GuestVolume): Promise<readonly string[]> {
  return (await node.connector.connections(volume.nqn, call())).map(({ name }) => name);
}

/** Connections: made twice, by somebody else, as somebody else, while they come and go. */
export const connectionRows = new NodeTests();

connectionRows.add(
  "a kernel that has not loaded the transport loads it when it is asked, and connects to nothing",
  async (node) => {
    const obstacle = () => node.connector.obstacle(call());
    assert.equal(await obstacle(), undefined);
    const before = await sh("ls /sys/class/nvme");
    try {
      await sh("rmmod nvme_tcp");
      assert.equal(await obstacle(), undefined, "the kernel has loaded it");
      assert.equal(await sh("ls /sys/class/nvme"), before);
      await sh("rmmod nvme_tcp && echo /away >/proc/sys/kernel/modprobe");
      assert.match(await obstacle() ?? "", /^the module nvme_tcp is not loaded; /);
    } finally {
      await sh("echo /sbin/modprobe >/proc/sys/kernel/modprobe; modprobe nvme-tcp");
    }
    assert.equal(await obstacle(), undefined);
    return "loaded by the kernel; where it cannot, it is missing";
  },
);

connectionRows.add(
  "a second connect to the same NQN is looked into: nothing is added, and both calls succeed",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await connectByHand(volume);
    const before = await names(node, volume);
    await node.stage(volume);
    await node.stage(volume);
    const { code, stderr } = await shell(commandByHand(volume));
    assert.match(stderr, /already connected/);
    assert.deepEqual(await names(node, volume), before);
    assert.equal(before.length, 1);
    await node.unstage(volume);
    return `the kernel: exit ${code}, ${stderr}; the driver: staged twice over ${before}`;
  },
);

connectionRows.add(
  "a connection as another host is replaced while nobody uses it, and refused while somebody does",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await connectByHand(volume, otherHost);
    const device = (await node.connector.find(volume.nqn, call()))!.path;
    const holder = new Deno.Command("sh", { args: ["-c", `exec sleep 1000 < ${device}`] }).spawn();
    try {
      await until("open", () => Deno.readTextFileSync(`/proc/${holder.pid}/comm`) === "sleep\n");
      await refusal(node.stage(volume), "precondition", /as another host, and in use: .*open: process/);
      assert.deepEqual(await node.states(volume), ["live"]);
    } finally {
      holder.kill("SIGKILL");
      await holder.status;
    }
    await node.stage(volume);
    const [connection] = await node.connector.connections(volume.nqn, call());
    assert.equal(connection?.hostNqn, ownHost.hostNqn);
    await node.unstage(volume);
    return "open: refused, and left as it was; then replaced by a connection as this node";
  },
);

connectionRows.add("a controller in connecting at a stage is waited for", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", small);
  await connectByHand(volume);
  volume.nvmet.unlink(volume.nqn);
  await until("connecting", async () => (await node.states(volume)).join() === "connecting");
  const [why, tookMs] = await timed(
    refusal(
      node.service.stage(node.stageRequest(volume), callWithin(3_000)),
      "unavailable",
      /state=connecting/,
    ),
  );
  assert.ok(tookMs < 3_500, `${tookMs} ms`);
  const staged = node.stage(volume);
  setTimeout(() => volume.nvmet.link(volume.nqn), 1_500);
  const [, waitedMs] = await timed(staged);
  await node.unstage(volume);
  return `away: ${
    why.slice(0, 120)
  }…, after ${tookMs} ms of 3000; back after 1500 ms: staged after ${waitedMs} ms`;
});

connectionRows.add(
  "fast_io_fail_tmo is set by sysfs: I/O to a target that is away fails in time, not at ctrl_loss_tmo",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    const target = {
      nqn: volume.nqn,
      addresses: volume.nvmet.addresses,
      port: 4420,
      sizeBytes: small,
      reconnectDelay: 1,
      fastIoFailTmo: 2,
    };
    await node.connector.connect(target, call());
    const [name] = await names(node, volume);
    const shown = await sh(
      `cat /sys/class/nvme/${name}/fast_io_fail_tmo /sys/class/nvme/${name}/ctrl_loss_tmo`,
    );
    assert.equal(shown, "2\n1800");
    const { path } = (await node.connector.find(volume.nqn, call()))!;
    volume.nvmet.unlink(volume.nqn);
    await until("away", async () => (await node.states(volume)).join() === "connecting");
    const [{ code, stderr }, tookMs] = await timed(
      shell(`dd if=${path} of=/dev/null bs=4k count=1 iflag=direct`),
    );
    assert.equal(code, 1);
    assert.match(stderr, /Input\/output error/);
    assert.deepEqual(await node.states(volume), ["connecting"]);
    await node.connector.disconnect(volume.nqn, call());
    return `fast_io_fail_tmo and ctrl_loss_tmo: ${
      shown.replace("\n", ", ")
    }; EIO after ${tookMs} ms, still connecting`;
  },
);

/** Whoever uses a volume keeps it connected. */
export const useRows = new NodeTests();

useRows.add("a volume below a map of this node is never disconnected: the driver refuses", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", small);
  await node.stage(volume, { capability: block });
  const device = await node.device(volume);
  await sh(`dmsetup create over --table '0 1024 linear ${device} 0'`);
  const said = await refusal(
    node.unstage(volume),
    "in-use",
    /itself uses .* by \/dev\/dm-[0-9]+ \(over\)/,
  );
  assert.deepEqual(await node.problems(volume), ["UsedByNode"]);
  await sh("dmsetup remove over");
  assert.deepEqual(await node.problems(volume), []);
  assert.deepEqual(await node.states(volume), ["live"]);
  await node.unstage(volume);
  return /because (.*?):? volume=/.exec(said)![1]!;
});

useRows.add(
  "mount options edited between stage and publish cut no pod off, and are the next pod's, also of a restarted driver",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    const edited = { mountFlags: ["noatime"] };
    const optionsAt = (path: string) =>
      /\S+/.exec(Deno.readTextFileSync("/proc/self/mountinfo").split(` ${path} `)[1] ?? "")?.[0] ?? "none";
    await node.stage(volume);
    await node.publish(volume, edited);
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
    const said = await refusal(node.stage(volume, edited), "in-use", /in another way.*published at/);
    assert.match(optionsAt(node.target("pvc-1")), /relatime/);
    const later = node.restarted();
    await refusal(later.stage(volume, edited), "in-use", /in another way.*published at/);
    await later.unpublish(volume);
    await later.stage(volume, edited);
    await later.publish(volume, edited);
    for (const path of [node.staging("pvc-1"), node.target("pvc-1")]) {
      assert.match(optionsAt(path), /noatime/);
    }
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
    await later.unpublish(volume);
    await later.unstage(volume);
    assert.deepEqual(await later.states(volume), []);
    return `${said.slice(0, 160)}…; then mounted with noatime`;
  },
);

/** What is left of a volume when its device or its target goes. */
export const lossRows = new NodeTests();

lossRows.add(
  "a stale bind that shows another volume's device takes no publish, and that volume no stage",
  async (node) => {
    const [lost, next] = [new GuestVolume(node, "pvc-1", small), new GuestVolume(node, "pvc-2", small)];
    const capability = block;
    await node.stage(lost, { capability });
    await node.publish(lost, { capability });
    const was = await node.connector.find(lost.nqn, call());
    await sh(`nvme disconnect -n ${lost.nqn}`);
    assert.match(Deno.readTextFileSync("/proc/self/mountinfo"), /\/nvme0n1\/\/deleted/);
    const gone = await refusal(node.publish(lost, { capability }), "precondition", /device is gone/);
    await refusal(node.stage(next, { capability }), "in-use", /is bound at/);
    assert.deepEqual(await node.states(next), []);
    // Somebody else brings the second volume under the first one's name and number.
    await connectByHand(next);
    const is = await node.connector.find(next.nqn, call());
    assert.deepEqual([is?.path, is?.deviceNumber], [was?.path, was?.deviceNumber]);
    const shown = await sh(`stat -c %Hr:%Lr ${node.target("pvc-1")}`);
    assert.equal(shown, was?.deviceNumber);
    await node.stage(lost, { capability });
    const other = await refusal(
      node.publish(lost, { capability }),
      "exists-incompatible",
      /something else is mounted/,
    );
    assert.deepEqual(await node.problems(lost), ["TargetMismatch"]);
    await node.unpublish(lost);
    await node.publish(lost, { capability });
    await sh(
      `dd if=/dev/urandom of=${node.target("pvc-1")} bs=64k count=16 oflag=direct conv=notrunc status=none`,
    );
    await sh(
      `cmp -n ${next.sizeBytes} ${next.image} /dev/zero && ! cmp -s -n 4096 ${lost.image} /dev/zero`,
    );
    await node.unpublish(lost);
    await node.unstage(lost);
    await sh(`nvme disconnect -n ${next.nqn}`);
    return `${was?.path} ${was?.deviceNumber} became the other's: ${gone.slice(0, 60)}…, then ${
      other.slice(0, 70)
    }…; repaired, 1 MiB written, none of it on the other volume`;
  },
);

lossRows.add(
  "a disconnect while the target is away takes a moment: unstage ends well before the deadline",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await node.stage(volume, { capability: block });
    const filesystem = new GuestVolume(node, "pvc-2", small);
    await node.stage(filesystem, { capability: ext4 });
    for (const each of [volume, filesystem]) each.nvmet.unlink(each.nqn);
    await until(
      "away",
      async () =>
        [...await node.states(volume), ...await node.states(filesystem)].join() === "connecting,connecting",
    );
    const unstage = ({ id }: GuestVolume) =>
      node.service.unstage({ volumeId: id, stagingPath: node.staging(id) }, callWithin(30_000));
    const [, tookMs] = await timed(unstage(volume));
    assert.ok(tookMs < 15_000, `${tookMs} ms of 30000`);
    // A mounted one may not be given up: what is in memory has to reach it.
    const [outcome, gaveUpMs] = await timed(unstage(filesystem).then(() => undefined, (error) => error));
    assert.ok(outcome instanceof Error, "the unstage of a mounted volume went through without its target");
    assert.ok(gaveUpMs < 31_000, `${gaveUpMs} ms`);
    filesystem.nvmet.link(filesystem.nqn);
    await until("back", async () => (await node.states(filesystem)).join() === "live");
    await until("unstaged", () => unstage(filesystem).then(() => true, () => false));
    return `raw: ${tookMs} ms; mounted: refused after ${gaveUpMs} ms (${
      outcome.message.slice(0, 90)
    }…), unstaged when the target was back`;
  },
);
