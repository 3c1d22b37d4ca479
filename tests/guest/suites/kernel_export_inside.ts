import assert from "node:assert/strict";
import {
  callWithin,
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
import { block, call } from "../../node/harness.ts";

const small = 32n << 20n;
/** The kernel counts attempts: short waits make short tests. */
export const impatient = { volumeContext: { reconnectDelay: "1" } };

/** How a writer writes line `$i`, so that it is on the disk: behind the others of a file, or as a block of a device. */
const ways = {
  file: 'echo "$i" >> "$1" && sync -d "$1"',
  block:
    'printf "%-4095s\\n" "$i" | dd of="$1" bs=4k seek=$((i - 1)) oflag=direct,dsync conv=notrunc iflag=fullblock status=none',
};

/** Writes numbered lines, each synced, until it is told to stop or fails; answers what it came to. */
export class Writer {
  readonly #child: Deno.ChildProcess;
  readonly #path: string;
  readonly #synced = Deno.makeTempFileSync();
  #acknowledged = 0;

  constructor(path: string, way: keyof typeof ways = "file") {
    this.#path = path;
    const loop = `i=0; until [ -e "$2.stop" ]; do i=$((i + 1)); { ${
      ways[way]
    }; } || exit 7; echo "$i" > "$2"; done`;
    const args = ["-c", loop, "writer", path, this.#synced];
    this.#child = new Deno.Command("/usr/bin/sh", { args }).spawn();
  }

  /** The last line whose sync went through. The file that says so is empty for a moment while it is written. */
  get acknowledged(): number {
    return this.#acknowledged = Math.max(this.#acknowledged, Number(Deno.readTextFileSync(this.#synced)));
  }

  /** Waits until it has written a few. */
  async begins(): Promise<void> {
    await until("it writes", () => this.acknowledged > 3);
  }

  /**
   * Waits until it wrote more: longer than the 30 s after which the kernel sends again what has got no answer.
   *
   * @throws {Error} at once when it has ended instead
   */
  async proceeds(): Promise<number> {
    const before = this.acknowledged;
    const ended = this.#child.status.then(({ code }) => {
      throw new Error(`the writer ended with ${code} after line ${before}`);
    });
    return await Promise.race([
      until("the writer goes on", () => this.acknowledged > before, 60_000),
      ended,
    ]);
  }

  /** Lets it end after the line that it is at; no line may have failed. */
  async end(): Promise<void> {
    Deno.writeTextFileSync(`${this.#synced}.stop`, "");
    assert.equal(await this.failed(), 0);
  }

  /** Ends it; what it wrote to its file has to be whole. */
  async stop(): Promise<number> {
    await this.end();
    return this.wrote(Deno.readTextFileSync(this.#path));
  }

  /** Counts what is there of it once it has ended: all that was acknowledged, in order, and at most the line after that. */
  wrote(text: string): number {
    const lines = text.trimEnd().split("\n");
    assert.deepEqual(lines, lines.map((_, index) => String(index + 1)));
    const beyond = lines.length - this.acknowledged;
    assert.ok(beyond === 0 || beyond === 1, `acknowledged=${this.acknowledged} there=${lines.length}`);
    return lines.length;
  }

  /** Waits until it fails. */
  async failed(): Promise<number> {
    return (await this.#child.status).code;
  }

  /** Ends it if it has not ended. */
  async kill(): Promise<void> {
    await shell(`kill -KILL ${this.#child.pid}`);
    await this.#child.status;
  }
}

async function published(node: GuestNode, more: Record<string, string> = {}): Promise<GuestVolume> {
  const volume = new GuestVolume(node, "pvc-1", small);
  await node.stage(volume, { volumeContext: { ...impatient.volumeContext, ...more } });
  await node.publish(volume);
  return volume;
}

function mountOptions(path: string): string {
  const line = Deno.readTextFileSync("/proc/mounts").split("\n").find((entry) =>
    entry.split(" ")[1] === path
  );
  return line?.split(" ")[3]?.split(",")[0] ?? "not mounted";
}

/** Exports that are withdrawn, and what becomes of whoever uses them. */
export const withdrawalRows = new NodeTests();

withdrawalRows.add(
  "an export that is withdrawn and comes back under the same NQN goes on where it was, still writable",
  async (node) => {
    const volume = await published(node);
    const writer = new Writer(`${node.target("pvc-1")}/log`);
    try {
      await writer.begins();
      volume.withdraw();
      await until("connecting", async () => (await node.states(volume)).join() === "connecting");
      assert.ok((await node.problems(volume)).includes("ConnectionLost"));
      volume.exportAgain();
      const backMs = await until("live", async () => (await node.states(volume)).join() === "live");
      const onMs = await writer.proceeds();
      assert.equal(mountOptions(node.staging("pvc-1")), "rw");
      assert.deepEqual(await node.problems(volume), []);
      await node.publish(volume, { targetPath: node.target("pvc-1", "pod-2") });
      await node.unpublish(volume, "pod-2");
      const lines = await writer.stop();
      await node.unpublish(volume);
      await node.unstage(volume);
      await sh(`e2fsck -fn ${volume.image}`);
      return `live after ${backMs} ms, written on after ${onMs} ms more, ${lines} synced lines in order, clean`;
    } finally {
      await writer.kill();
    }
  },
);

withdrawalRows.add(
  "an export under another NQN cuts the old one off: not a block arrives, and the new epoch stages once the old is down",
  async (node) => {
    const volume = await published(node);
    const writer = new Writer(`${node.target("pvc-1")}/log`);
    await writer.begins();
    const old = volume.nqn;
    volume.nextEpoch();
    const atOnce = await volume.digest();
    const request = node.stageRequest(volume, impatient);
    const inUse = await refusal(
      node.service.stage(request, callWithin(30_000)),
      "in-use",
      /published at|mounted at/,
    );
    const status = await writer.failed();
    assert.equal(status, 7);
    await node.unpublish(volume);
    assert.equal(await volume.digest(), atOnce, "something reached the disk after it was taken away");
    const [, tookMs] = await timed(node.stage(volume, impatient));
    assert.deepEqual(await node.connector.connected(call()), [volume.nqn]);
    await node.publish(volume);
    const lines = (await Deno.readTextFile(`${node.target("pvc-1")}/log`)).trimEnd().split("\n").length;
    await node.unpublish(volume);
    await node.unstage(volume);
    await sh(`e2fsck -fn ${volume.image}`);
    assert.ok(!(await node.connector.connected(call())).includes(old));
    return `while published: ${
      inUse.slice(0, 60)
    }…; the writer got its error; then staged in ${tookMs} ms, ${lines} lines there, nothing of the old left`;
  },
);

withdrawalRows.add(
  "a volume that is gone for good gives errors, says so, and can be taken down",
  async (node) => {
    const volume = await published(node, { ctrlLossTmo: "2" });
    volume.withdraw();
    const lostMs = await until("given up", async () => (await node.states(volume)).length === 0, 30_000);
    const { stderr } = await shell(`dd if=/dev/zero of=${node.target("pvc-1")}/x bs=4k count=1 conv=fsync`);
    assert.match(stderr, /Input\/output error|Read-only file system/);
    const shown = mountOptions(node.staging("pvc-1"));
    const problems = await node.problems(volume);
    assert.ok(problems.includes("NotConnected"), problems.join());
    const again = node.publish(volume, { targetPath: node.target("pvc-1", "pod-2") });
    await refusal(again, "precondition", /device is gone.*delete the pods/);
    await refusal(node.service.stats("pvc-1", node.target("pvc-1"), call()), "unavailable", /gone/);
    const [, unpublishMs] = await timed(node.unpublish(volume));
    const [, unstageMs] = await timed(node.unstage(volume));
    return `after ${lostMs} ms EIO, /proc/mounts: ${shown}, health: ${problems}; unpublish ${unpublishMs} ms, unstage ${unstageMs} ms`;
  },
);

/** What a target says it offers, and to whom. */
export const offerRows = new NodeTests();

offerRows.add(
  "the discovery log lists what that port offers to this host, and nothing else",
  async (node) => {
    const [open, other] = [new GuestVolume(node, "pvc-1", small), new GuestVolume(node, "pvc-2", small)];
    const [first, second] = node.nvmet.addresses as [string, string];
    const offered = (address: string) => node.connector.offered({ address, port: 4420 }, call());
    open.nvmet.unlink(open.nqn, second);
    const own = (nqns: readonly string[]) => nqns.filter((nqn) => nqn.includes("mikrotik"));
    assert.deepEqual(own(await offered(first)).toSorted(), [open.nqn, other.nqn]);
    assert.deepEqual(own(await offered(second)), [other.nqn]);
    node.nvmet.allow(other.nqn, ["nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555"]);
    assert.deepEqual(own(await offered(first)), [open.nqn]);
    assert.deepEqual(own(await offered(second)), []);
    node.nvmet.allow(other.nqn, [ownHost.hostNqn]);
    assert.deepEqual(own(await offered(second)), [other.nqn]);
    node.nvmet.unlink(open.nqn, first);
    node.nvmet.unlink(other.nqn);
    const silent = await refusal(offered(first), "unavailable", /./);
    open.nvmet.link(open.nqn);
    other.nvmet.link(other.nqn);
    return `by port and by host; a port without exports: ${silent.slice(0, 90)}`;
  },
  { addresses: ["127.0.0.1", "10.99.0.2"] },
);

offerRows.add(
  "a host taken off the allow-list goes on until the export is bounced, and then never comes back",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    const capability = block;
    volume.nvmet.allow(volume.nqn, []);
    const refused = await refusal(
      node.stage(volume, { capability }),
      "unavailable",
      /the target refuses.*list of hosts lacks this node/,
    );
    assert.deepEqual(await node.states(volume), []);
    volume.nvmet.allow(volume.nqn, [ownHost.hostNqn]);
    await node.stage(volume, { capability, ...impatient });
    await node.publish(volume, { capability });
    const write = () =>
      shell(`dd if=/dev/urandom of=${node.target("pvc-1")} bs=4k count=1 oflag=direct conv=notrunc`);
    volume.nvmet.allow(volume.nqn, []);
    const before = await volume.digest();
    assert.equal((await write()).code, 0);
    const after = await volume.digest();
    assert.notEqual(after, before, "a live connection goes on");
    volume.nvmet.unlink(volume.nqn);
    volume.nvmet.link(volume.nqn);
    await until("cut", async () => (await node.states(volume)).join() === "connecting");
    const blocked = write();
    assert.deepEqual(
      (await node.connector.offered({ address: "127.0.0.1", port: 4420 }, call())).filter((nqn) =>
        nqn === volume.nqn
      ),
      [],
    );
    // Long enough for several of its attempts to come back.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    assert.deepEqual(await node.states(volume), ["connecting"]);
    await node.connector.forceDisconnect(volume.nqn, call());
    const { code } = await blocked;
    assert.notEqual(code, 0);
    assert.equal(await volume.digest(), after);
    await node.unpublish(volume);
    await node.unstage(volume);
    return `not on the list: ${
      refused.slice(0, 45)
    }…; live: still writing; bounced: refused for good, cut off, not a block more`;
  },
);
