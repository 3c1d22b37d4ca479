import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "../../tests/fakes/processes.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { TimedFiles } from "../host/timed_files.ts";
import { VolumeError } from "../volume/errors.ts";
import type { NfsShare } from "../volume/ports/nfs_ports.ts";
import type { FilesystemStats, MountEntry } from "../volume/ports/node_ports.ts";
import { SystemNfsMounts } from "./nfs_mounts.ts";

const target = "/state/mounts/k";
const share: NfsShare = {
  addresses: [{ host: "10.0.0.1", port: 2049 }, { host: "fd00::1", port: 2050 }],
  export: "/pool",
  options: ["hard", "noresvport"],
};

type Tool = (run: RecordedRun) => Scripted | undefined | Promise<Scripted | undefined>;

/** A node whose tools do what a test says. */
class Scene {
  readonly clock = new FakeClock();
  readonly files = new FakeKernelFiles();
  readonly processes = new FakeProcesses();
  table: MountEntry[] = [];
  answers = true;
  identified = 0;
  readonly nfs: SystemNfsMounts;

  constructor(tools: Partial<Record<string, Tool>> = {}) {
    this.files.texts.set("/proc/filesystems", "nodev\tproc\nnodev\tnfs4\n");
    this.processes.script = (run) => tools[run.tool]?.(run);
    const { clock, files, processes } = this;
    this.nfs = new SystemNfsMounts({
      clock,
      files,
      processes,
      mounts: {
        table: () => Promise.resolve([...this.table]),
        whoKeeps: (at) =>
          Promise.resolve(new VolumeError("in-use", `Cannot unmount ${at} because process 7 uses it`)),
      },
      filesystems: {
        stats: () =>
          this.answers ? Promise.resolve({} as FilesystemStats) : new Promise<FilesystemStats>(() => {}),
      },
      timedFiles: new TimedFiles(clock),
      identifier: { ensure: () => void this.identified++ },
    });
  }

  mounted(mountPoint = target): this {
    this.table.push(
      { mountPoint, mountOptions: ["rw", "nodev"], filesystem: "nfs4" } as unknown as MountEntry,
    );
    return this;
  }

  gone(): void {
    this.table = [];
  }

  call() {
    return fakeCall(this.clock, 120_000);
  }

  /** Lets time pass until the work has settled. */
  async settled<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = () => void (isOver = true);
    work.then(over, over);
    for (let round = 0; !isOver && round < 100; round++) await this.clock.advance(1_000);
    return await work;
  }
}

Deno.test("mount() runs the kernel's helper with the address's port, once the client has its name", async () => {
  const scene = new Scene();
  await scene.nfs.mount(share, target, scene.call());
  assert.deepEqual(scene.processes.lines, [
    `mount.nfs4 10.0.0.1:/pool ${target} -n -o retry=0,port=2049,hard,noresvport`,
  ]);
  assert.equal(scene.identified, 1);
});

Deno.test("mount() tries the next address after one that fails or takes too long", async () => {
  for (
    const first of [
      () => ({ code: 32, stderr: "mount.nfs4: Connection refused" }),
      () => {
        throw new VolumeError("deadline", "Cannot wait");
      },
    ]
  ) {
    let count = 0;
    const scene = new Scene({ "mount.nfs4": () => count++ === 0 ? first() : 0 });
    await scene.nfs.mount(share, target, scene.call());
    assert.match(scene.processes.lines.at(-1)!, /^mount\.nfs4 \[fd00::1\]:\/pool .*port=2050/);
  }
});

Deno.test("mount() names every address's reason when none mounts", async () => {
  const scene = new Scene({ "mount.nfs4": () => ({ code: 32, stderr: "mount.nfs4: no route" }) });
  const mounting = scene.nfs.mount(share, target, scene.call());
  await assert.rejects(
    mounting,
    refusal("unavailable", /10\.0\.0\.1:2049: .*no route \| \[fd00::1\]:2050: .*no route/),
  );
});

Deno.test("mount() takes a mount that a killed helper has made at the last moment", async () => {
  const scene: Scene = new Scene({
    "mount.nfs4": () => {
      scene.mounted();
      throw new VolumeError("deadline", "Cannot wait");
    },
  });
  await scene.nfs.mount(share, target, scene.call());
  assert.equal(scene.processes.runs.length, 1);
});

Deno.test("mount() uses a reserved port for an export that takes no other", async () => {
  const scene = new Scene({
    "mount.nfs4": ({ line }) =>
      line.includes("noresvport") ? { code: 32, stderr: "mount.nfs4: Operation not permitted" } : 0,
  });
  await scene.nfs.mount(share, target, scene.call());
  assert.deepEqual(scene.processes.lines.slice(1), [
    `mount.nfs4 10.0.0.1:/pool ${target} -n -o retry=0,port=2049,hard`,
  ]);
});

Deno.test("unmount() asks no server, and returns when the table shows nothing", async () => {
  const scene: Scene = new Scene({ "umount": () => void scene.gone() });
  scene.mounted();
  assert.equal(await scene.nfs.unmount(target, scene.call()), "unmounted");
  assert.deepEqual(scene.processes.lines, [`umount -n -c -i -- ${target}`]);
  assert.equal(await scene.nfs.unmount(target, scene.call()), "unmounted");
});

Deno.test("unmount() refuses a busy mount whose server answers", async () => {
  const scene = new Scene({ "umount": () => ({ code: 32, stderr: "umount: target is busy." }) });
  scene.mounted();
  await assert.rejects(scene.nfs.unmount(target, scene.call()), refusal("in-use", /process 7 uses it/));
});

Deno.test("unmount() detaches a busy mount whose server is silent", async () => {
  const scene: Scene = new Scene({
    "umount": ({ line }) =>
      line.includes("--lazy") ? void scene.gone() : { code: 32, stderr: "target is busy" },
  });
  scene.mounted();
  scene.answers = false;
  assert.equal(await scene.settled(scene.nfs.unmount(target, scene.call())), "detached");
});

Deno.test("unmount() leaves a hanging one to the kernel, and does not kill it", async () => {
  const scene: Scene = new Scene({
    "umount": () => {
      scene.gone();
      return new Promise(() => {});
    },
  });
  scene.mounted();
  assert.equal(await scene.settled(scene.nfs.unmount(target, scene.call())), "detached");
  assert.equal(scene.processes.runs.length, 1);
  assert.equal(scene.processes.runs[0]!.options.mustFinish, true);
});

Deno.test("flush() says what came of it", async () => {
  const scene = new Scene();
  assert.equal(await scene.nfs.flush(target, scene.call()), "written");
  assert.deepEqual(scene.processes.lines, [`sync --file-system -- ${target}`]);
  const failing = new Scene({ "sync": () => 1 });
  assert.equal(await failing.nfs.flush(target, failing.call()), "failed");
  const silent = new Scene();
  silent.answers = false;
  assert.equal(await silent.settled(silent.nfs.flush(target, silent.call())), "silent");
  assert.deepEqual(silent.processes.lines, [], "a sync would only hang");
});

Deno.test("flush() is no success while a server that answers still takes data, and goes on with the next call", async () => {
  const syncing = Promise.withResolvers<number>();
  const scene = new Scene({ "sync": () => syncing.promise });
  for (const _ of ["first", "second"]) {
    const flushing = scene.nfs.flush(target, scene.call());
    await assert.rejects(scene.settled(flushing), refusal("unavailable", /still writes/));
  }
  const flushing = scene.nfs.flush(target, scene.call());
  await scene.clock.advance(0);
  syncing.resolve(0);
  assert.equal(await flushing, "written");
  assert.equal(scene.processes.runs.length, 1);
  assert.equal(scene.processes.runs[0]!.options.mustFinish, true, "a killed one would have to begin anew");
  await scene.nfs.flush(target, scene.call());
  assert.equal(scene.processes.runs.length, 2, "what is written later needs another one");
});

Deno.test("flush() tells a server that went silent from one that takes long", async () => {
  const scene: Scene = new Scene({
    "sync": () => {
      scene.answers = false;
      return new Promise(() => {});
    },
  });
  assert.equal(await scene.settled(scene.nfs.flush(target, scene.call())), "silent");
});

Deno.test("makeReadOnly() repeats the flags that the mount has", async () => {
  const scene = new Scene().mounted();
  await scene.nfs.makeReadOnly(target, scene.call());
  assert.deepEqual(scene.processes.lines, [`mount -n -c -o remount,bind,ro,nodev -- ${target}`]);
});

Deno.test("realPath() tells a missing path from one that cannot be read", async () => {
  const missing = new Scene({
    "realpath": () => ({ code: 1, stderr: "realpath: /a: No such file or directory\n" }),
  });
  assert.equal(await missing.nfs.realPath("/a", missing.call()), undefined);
  const stale = new Scene({ "realpath": () => ({ code: 1, stderr: "realpath: /a: Stale file handle\n" }) });
  await assert.rejects(stale.nfs.realPath("/a", stale.call()), refusal("unavailable", /Stale/));
});

Deno.test("obstacle() loads the module, and says what is missing", async () => {
  const scene: Scene = new Scene({
    "mount": () => {
      scene.files.texts.set("/proc/filesystems", "nodev\tnfs4\n");
      return 32;
    },
  });
  scene.files.texts.set("/proc/filesystems", "nodev\tproc\n");
  assert.equal(await scene.nfs.obstacle(scene.call()), undefined);
  assert.deepEqual(scene.processes.lines, ["mount -n -i -t nfs4 -- none /proc"]);
  const without = new Scene({ "mount": () => 32 });
  without.files.texts.set("/proc/filesystems", "nodev\tproc\nnodev\tnfsd\n");
  assert.match(await without.nfs.obstacle(without.call()) ?? "", /nfsv4/);
});

Deno.test("obstacle() refuses a process that is not in the node's network", async () => {
  const scene = new Scene();
  scene.files.links.set("/proc/self/ns/net", "net:[4026532000]");
  scene.files.links.set("/proc/1/ns/net", "net:[4026531840]");
  assert.match(await scene.nfs.obstacle(scene.call()) ?? "", /hostNetwork/);
  scene.files.links.set("/proc/self/ns/net", "net:[4026531840]");
  assert.equal(await scene.nfs.obstacle(scene.call()), undefined);
});
