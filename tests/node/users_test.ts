import assert from "node:assert/strict";
import { isCertain } from "../../src/volume/model/host/device_user.ts";
import { usersOf } from "../../src/volume/rules/host/device_users.ts";
import { refusal } from "../fakes/refusal.ts";
import { apart, call, ext4, nodeTest, type RealNode, run, TestVolume, xfs } from "./harness.ts";

/** A shell that has done what it was told, and waits. */
class WaitingShell implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
  }

  static async start(command: readonly string[], script: string): Promise<WaitingShell> {
    const [tool, ...args] = [...command, "sh", "-ec", `${script}\necho ready\nread line`];
    const child = new Deno.Command(tool!, { args, stdin: "piped", stdout: "piped" }).spawn();
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    await reader.cancel();
    const shell = new WaitingShell(child);
    if (new TextDecoder().decode(value) === "ready\n") return shell;
    await shell[Symbol.asyncDispose]();
    throw new Error(`the script ended: ${script}`);
  }

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.close();
    await this.#child.status;
  }
}

/** The beginning of a command that runs in a mount namespace with copies of this test's mounts. */
const otherNamespace = ({ folder }: RealNode) => apart(folder, 'exec "$@"');

/** The beginning of a command that runs in a mount namespace whose mounts receive those made here. */
const namespaceLike = (propagation: "unchanged" | "slave") =>
  ["unshare", "--mount", "--propagation", propagation] as const;

async function staged(node: RealNode, capability = ext4): Promise<TestVolume> {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { capability });
  return volume;
}

nodeTest("unstage() names the process that works in the folder that is to be unmounted", async (node) => {
  const volume = await staged(node);
  {
    await using shell = await WaitingShell.start([], `cd ${node.staging(volume.id)}`);
    const text = new RegExp(
      `Cannot unmount ${node.staging(volume.id)} because process ${shell.pid} \\(sh\\) uses ${
        node.staging(volume.id)
      } of`,
    );
    await assert.rejects(node.unstage(volume), refusal("in-use", text));
  }
  await node.unstage(volume);
});

nodeTest(
  "unstage() names the program that runs from the file system, and has nothing of it open",
  async (node) => {
    const volume = await staged(node);
    const staging = node.staging(volume.id);
    await Deno.copyFile("/usr/bin/sleep", `${staging}/wait`);
    await Deno.chmod(`${staging}/wait`, 0o755);
    {
      await using shell = await WaitingShell.start(
        [],
        `${staging}/wait 60 <&- >&- 2>&- & trap "kill $!" EXIT`,
      );
      const text = new RegExp(
        `Cannot unmount ${staging} because process [0-9]+ \\(wait\\) uses ${staging}/wait of`,
      );
      await assert.rejects(node.unstage(volume), refusal("in-use", text), `shell ${shell.pid}`);
    }
    await node.unstage(volume);
  },
);

for (
  const [what, script, end, words] of [
    [
      "what is mounted in it",
      'mkdir "$0/below"; mount -t tmpfs scratch "$0/below"',
      'umount "$0/below"',
      "scratch is mounted at STAGING/below; unmount it",
    ],
    [
      "the loop device of a file in it",
      'truncate -s 1M "$0/image"; losetup --find "$0/image"',
      'losetup -d $(losetup -n -O NAME -j "$0/image")',
      "STAGING/image is open: /dev/loop[0-9]+ on top of it; on the node, losetup -d /dev/loop",
    ],
    [
      "the file in it to which the machine swaps",
      'dd if=/dev/zero of="$0/swap" bs=1M count=1 status=none; chmod 600 "$0/swap"; mkswap -q "$0/swap"; swapon "$0/swap"',
      'swapoff "$0/swap"',
      "this node swaps to STAGING/swap; on the node, swapoff STAGING/swap",
    ],
  ] as const
) {
  nodeTest(`unstage() names ${what}`, async (node) => {
    const volume = await staged(node);
    const staging = node.staging(volume.id);
    await run("sh", "-ec", script, staging);
    try {
      const text = new RegExp(`Cannot unmount ${staging} because ${words.replaceAll("STAGING", staging)}`);
      await assert.rejects(node.unstage(volume), refusal("in-use", text));
    } finally {
      await run("sh", "-ec", end, staging);
    }
    await node.unstage(volume);
  });
}

nodeTest(
  "usersOf() names a program that works on the mounted volume, and no copies of this node's mounts",
  async (node) => {
    await run("mount", "--bind", node.kubelet, node.kubelet);
    try {
      await run("mount", "--make-shared", node.kubelet);
      await using _peer = await WaitingShell.start(namespaceLike("unchanged"), "");
      await using _receiver = await WaitingShell.start(namespaceLike("slave"), "");
      const volume = await staged(node);
      const staging = node.staging(volume.id);
      const path = await node.device(volume);
      const deviceNumber = node.libc.info(path)!.deviceNumber!;
      const others = async () => {
        const users = await usersOf(node.deps, { path, deviceNumber }, "everything", call());
        return users.filter((user) => isCertain(user) && user.by !== "mount");
      };
      await using _copier = await WaitingShell.start(namespaceLike("unchanged"), "");
      assert.deepEqual(await others(), []);
      {
        await using shell = await WaitingShell.start([], `cd ${staging}`);
        const process = { pid: shell.pid, name: "sh", pod: undefined };
        assert.deepEqual(await others(), [
          { device: path, by: "file", file: staging, process, isMounted: true },
        ]);
      }
      {
        // A bind elsewhere is no copy that goes when this node's mount goes, though it is one of its group.
        const script = `mkdir ${node.folder}/kept; mount --bind ${staging} ${node.folder}/kept`;
        await using shell = await WaitingShell.start(namespaceLike("slave"), script);
        const process = { pid: shell.pid, name: "sh", pod: undefined };
        assert.deepEqual(await others(), [
          { device: path, by: "namespace", at: `${node.folder}/kept`, process },
        ]);
      }
      await node.unstage(volume);
    } finally {
      await run("umount", "--lazy", node.kubelet);
    }
  },
);

nodeTest("unstage() names the process that uses a file of what was unmounted lazily", async (node) => {
  const volume = await staged(node);
  {
    await using shell = await WaitingShell.start([], `exec 3> ${node.staging(volume.id)}/log`);
    await run("umount", "-l", node.staging(volume.id));
    const text = new RegExp(`process ${shell.pid} \\(sh\\) uses /log of the file system on /dev/loop`);
    await assert.rejects(node.unstage(volume), refusal("in-use", text));
  }
  await node.unstage(volume);
});

nodeTest(
  "unstage() names a mount namespace without a process, and thaws nothing that it may have",
  async (node) => {
    const volume = await staged(node);
    const pins = `${node.folder}/pins`;
    await Deno.mkdir(pins);
    await run("mount", "-t", "tmpfs", "--make-private", "pins", pins);
    try {
      await Deno.writeTextFile(`${pins}/one`, "");
      const [tool, , ...args] = apart(node.folder, "true");
      await run(tool!, `--mount=${pins}/one`, ...args);
      try {
        const text =
          /ext4 of \/dev\/loop[0-9]+ lives on without a mount .* could not be searched: mnt:\[[0-9]+\] at /;
        await assert.rejects(node.unstage(volume), refusal("in-use", text));
      } finally {
        await run("umount", `${pins}/one`);
      }
    } finally {
      await run("umount", pins);
    }
    await node.unstage(volume);
  },
);

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { readonly filesystem: string };
  nodeTest(`unstage() ends a frozen ${filesystem} that was unmounted by hand`, async (node) => {
    const volume = await staged(node, capability);
    const staging = node.staging(volume.id);
    const device = await node.device(volume);
    try {
      await run("fsfreeze", "--freeze", staging);
      await run("umount", staging);
      await node.unstage(volume);
    } finally {
      const lives = (await run("sh", "-c", `ls -d /sys/fs/*/${device.slice(5)} || true`)).trim() !== "";
      if (lives) {
        await run("sh", "-c", `mount ${device} ${staging}; fsfreeze -u ${staging}; umount ${staging}`);
      }
    }
    assert.equal(await node.deps.connector.find(volume.nqn, call()), undefined);
  });
}

/** A disk with one partition of 8 MiB, of which the kernel is told, as a loop device. */
async function partitioned(folder: string): Promise<string> {
  const image = `${folder}/disk.img`;
  await Deno.writeFile(image, new Uint8Array(16 * 1024 * 1024));
  const path = (await run("losetup", "--partscan", "--find", "--show", image)).trim();
  await run("addpart", path, "1", "2048", "16384");
  return path;
}

nodeTest(
  "usersOf() names a partition that is mounted elsewhere, and one to which the machine swaps",
  async (node) => {
    const path = await partitioned(node.folder);
    try {
      const deviceNumber = node.libc.info(path)!.deviceNumber!;
      const users = () => usersOf(node.deps, { path, deviceNumber }, "claimed", call());
      assert.deepEqual(await users(), []);
      const partition = `${path}p1`;
      await run("mkfs.ext4", "-q", partition);
      await Deno.mkdir(`${node.folder}/part`);
      {
        await using shell = await WaitingShell.start(
          otherNamespace(node),
          `mount ${partition} ${node.folder}/part`,
        );
        const process = { pid: shell.pid, name: "sh", pod: undefined };
        assert.deepEqual(await users(), [
          { device: partition, by: "namespace", at: `${node.folder}/part`, process },
        ]);
      }
      assert.deepEqual(await users(), []);
      await run("mkswap", "--force", partition);
      await run("swapon", partition);
      try {
        assert.deepEqual(await users(), [{ device: partition, by: "swap" }]);
      } finally {
        await run("swapoff", partition);
      }
    } finally {
      await run("losetup", "--detach", path);
    }
  },
);

for (const [filesystem, capability] of [["ext4", ext4], ["xfs", xfs]] as const) {
  nodeTest(
    `stage() and publish() name who keeps an ${filesystem} that an error has shut down in another mount namespace`,
    async (node) => {
      const volume = await staged(node, capability);
      {
        await using shell = await WaitingShell.start(otherNamespace(node), "");
        await run("xfs_io", "-x", "-c", "shutdown", node.staging(volume.id));
        const kept = new RegExp(
          `Cannot stage the volume because .* in the mount namespace of process ${shell.pid} `,
        );
        await assert.rejects(node.stage(volume, { capability }), refusal("unavailable", kept));
        await assert.rejects(node.publish(volume, { capability }), refusal("unavailable", kept));
      }
      await node.publish(volume, { capability });
      await node.unpublish(volume);
      await node.unstage(volume);
    },
  );
}
