import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { VolumeError } from "../volume/errors.ts";
import { Libc, unlessGone } from "./libc.ts";
import { eventually } from "../../tests/support/eventually.ts";

async function withLibc(use: (libc: Libc) => unknown): Promise<void> {
  const libc = new Libc();
  try {
    await use(libc);
  } finally {
    libc.close();
  }
}

const never = new AbortController().signal;

Deno.test("readText() reads a file of /proc whose size is not known beforehand", () =>
  withLibc((libc) => {
    const own = libc.readText("/proc/self/mountinfo");
    assert.match(own ?? "", / \/proc /);
    assert.equal(own, Deno.readTextFileSync("/proc/self/mountinfo").replace(/\n$/, ""));
  }));

Deno.test("readText() assembles long files", () =>
  withLibc((libc) => {
    const path = Deno.makeTempFileSync({ prefix: "rds-csi-test-" });
    try {
      const text = "0123456789abcdef".repeat(20_000);
      Deno.writeTextFileSync(path, text);
      assert.equal(libc.readText(path), text);
    } finally {
      Deno.removeSync(path);
    }
  }));

Deno.test("readText(), readLink(), list() and info() return undefined when nothing is there", () =>
  withLibc((libc) => {
    assert.equal(libc.readText("/proc/nothing"), undefined);
    assert.equal(libc.readLink("/proc/nothing"), undefined);
    assert.equal(libc.list("/proc/nothing"), undefined);
    assert.equal(libc.info("/proc/nothing/at/all"), undefined);
  }));

/** What becomes of a call that fails with these error numbers in turn, and then succeeds. */
function failing(path: string, ...errors: readonly number[]): number | undefined {
  const left = [...errors];
  return unlessGone(path, () => left.length === 0 ? 7n : -1n, () => left.shift()!);
}

Deno.test("unlessGone() takes EINVAL for a map that is being deleted, and for nothing else", () => {
  assert.equal(failing("/sys/block/dm-0/dm/name", 22), undefined);
  assert.throws(() => failing("/sys/block/dm-0/dm/uuid", 5), refusal("unavailable", /errno=5$/));
  for (const path of ["/sys/block/dm-0/size", "/sys/class/nvme/nvme0/state", "/proc/self/mountinfo"]) {
    assert.throws(() => failing(path, 22), refusal("unavailable", /errno=22$/), path);
    assert.equal(failing(path, 2), undefined, path);
  }
});

Deno.test("unlessGone() asks again where errno is that of the runtime's own calls, up to ten times", () => {
  const path = "/sys/block/loop32/loop/backing_file";
  assert.equal(failing(path, 11, 4, 110, 12), 7);
  assert.equal(failing(path, 11, 2), undefined);
  assert.throws(() => failing(path, ...new Array<number>(10).fill(11)), refusal("unavailable", /errno=11$/));
});

Deno.test("readLink() throws unavailable for anything but a link", () =>
  withLibc((libc) => {
    assert.throws(
      () => libc.readLink("/proc/self/mountinfo"),
      refusal("unavailable"),
    );
  }));

Deno.test("readLink() reads a link", () =>
  withLibc((libc) => {
    assert.equal(libc.readLink("/proc/self"), String(Deno.pid));
  }));

Deno.test("list() lists a folder that needs several reads", () =>
  withLibc((libc) => {
    const folder = Deno.makeTempDirSync({ prefix: "rds-csi-test-" });
    try {
      const names = Array.from({ length: 3000 }, (_, i) => `a-rather-long-name-of-a-file-${i}`);
      for (const name of names) Deno.writeTextFileSync(`${folder}/${name}`, "");
      assert.deepEqual(libc.list(folder)?.toSorted(), names.toSorted());
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  }));

Deno.test("info() distinguishes folders, files and devices, and says on which file system they are", () =>
  withLibc((libc) => {
    for (
      const [path, kind] of [["/proc", "directory"], ["/proc/self/stat", "file"], ["/dev/null", "other"]]
    ) {
      // An anonymous device's number is its minor, as stat(2) writes it while it has 8 bits.
      const filesystemNumber = `0:${Deno.statSync(path!).dev}`;
      assert.deepEqual(libc.info(path!), { kind, filesystemNumber });
    }
  }));

Deno.test("canOpenExclusively() is false for a path that cannot be opened", () =>
  withLibc(async (libc) => {
    assert.equal(await libc.canOpenExclusively("/dev/nothing", never), false);
  }));

Deno.test("canOpenExclusively() is false when the signal was aborted", () =>
  withLibc(async (libc) => {
    assert.equal(await libc.canOpenExclusively("/dev/null", AbortSignal.abort()), false);
  }));

Deno.test("canOpenExclusively() lets more callers wait than it opens at once", () =>
  withLibc(async (libc) => {
    const paths = Array.from({ length: 40 }, (_, i) => `/dev/nothing-${i}`);
    const answers = await Promise.all(
      [...paths, "/dev/null"].map((path) => libc.canOpenExclusively(path, never)),
    );
    assert.equal(answers.at(-1), true);
    assert.ok(answers.slice(0, -1).every((answer) => !answer));
  }));

Deno.test("hold() keeps open what it opens, and returns the device's number", () =>
  withLibc(async (libc) => {
    // Not /dev/null, which other tests of this process open.
    const opened = () =>
      libc.list("/proc/self/fd")!.filter((name) => libc.readLink(`/proc/self/fd/${name}`) === "/dev/full");
    const before = opened().length;
    const held = await libc.hold("/dev/full", never);
    assert.equal(opened().length, before + 1);
    assert.equal(held?.deviceNumber, undefined); // /dev/full is no block device.
    for (let times = 0; times < 2; times++) await held?.release();
    assert.equal(opened().length, before);
    assert.equal(await libc.hold("/dev/nothing", never), undefined);
    assert.equal(await libc.hold("/dev/full", AbortSignal.abort()), undefined);
    assert.equal(opened().length, before);
  }));

Deno.test("a path with a NUL character is refused", () =>
  withLibc((libc) => {
    assert.throws(() => libc.readText("/proc\0/self"), refusal("invalid"));
  }));

Deno.test("readDirect() reads the requested parts, one after the other", () =>
  withLibc(async (libc) => {
    await withFile(3 << 20, async (path) => {
      const parts = [{ offset: 0n, length: 4096 }, { offset: 2n << 20n, length: 1 << 20 }];
      const [head, tail] = await libc.readDirect(path, parts, never);
      assert.deepEqual([head!.length, head![0], head![4095]], [4096, 1, 1]);
      assert.deepEqual([tail!.length, tail![0], tail!.at(-1)], [1 << 20, 3, 3]);
    });
  }));

for (
  const [name, part] of [
    ["gives less than was asked for", { offset: 4096n, length: 1 << 20 }],
    ["begins behind the end", { offset: 8n << 20n, length: 4096 }],
    ["is refused, as one within a block", { offset: 1n, length: 4096 }],
  ] as const
) {
  Deno.test(`readDirect() throws unavailable for a read that ${name}`, () =>
    withLibc(async (libc) => {
      await withFile(1 << 20, async (path) => {
        const reading = libc.readDirect(path, [{ offset: 0n, length: 4096 }, part], never);
        await assert.rejects(reading, refusal("unavailable"));
        const [again] = await libc.readDirect(path, [{ offset: 0n, length: 4096 }], never);
        assert.equal(again!.length, 4096);
      });
    }));
}

Deno.test("readDirect() throws unavailable for a missing path, and once its signal is aborted", () =>
  withLibc(async (libc) => {
    const parts = [{ offset: 0n, length: 4096 }];
    for (const [path, signal] of [["/nowhere", never], ["/dev/null", AbortSignal.abort()]] as const) {
      await assert.rejects(
        libc.readDirect(path, parts, signal),
        refusal("unavailable"),
      );
    }
  }));

Deno.test("readDirect() does not prevent opening the device while it reads", () =>
  withLibc(async (libc) => {
    await withFile(1 << 20, async (path) => {
      using hanging = hangingCalls("preadWaiting");
      const reading = libc.readDirect(path, start, never);
      await eventually(() => hanging.under() === 1);
      assert.equal(await libc.canOpenExclusively(path, never), true);
      hanging.release();
      assert.equal((await reading)[0]!.length, 4096);
    });
  }));

/** While it is used, calls of that function hang and are counted, until they are released. */
function hangingCalls(name: "preadWaiting" | "fsyncWaiting"):
  & { readonly under: () => number; readonly most: () => number; release(): void }
  & Disposable {
  const { dlopen } = Deno;
  const { promise: over, resolve: release } = Promise.withResolvers<void>();
  let [now, most] = [0, 0];
  Deno.dlopen = (path, functions) => {
    const library = dlopen(path, functions);
    const symbols = library.symbols as Record<string, (...args: unknown[]) => unknown>;
    const work = symbols[name]!;
    const hangs = async (...args: unknown[]) => {
      most = Math.max(most, ++now);
      await over;
      return await Promise.resolve(work(...args)).finally(() => now--);
    };
    return { symbols: { ...symbols, [name]: hangs }, close: () => library.close() } as typeof library;
  };
  return {
    under: () => now,
    most: () => most,
    release,
    [Symbol.dispose]: () => void (Deno.dlopen = dlopen),
  };
}

function openOf(libc: Libc, path: string): number {
  return libc.list("/proc/self/fd")!.filter((name) => libc.readLink(`/proc/self/fd/${name}`) === path).length;
}

const start = [{ offset: 0n, length: 4096 }];

Deno.test("readDirect() of many devices that hang takes few threads, and does not prevent opening any", () =>
  withLibc(async (libc) => {
    await withFile(1 << 20, async (path) => {
      using hanging = hangingCalls("preadWaiting");
      const over = new AbortController();
      const paths = Array.from({ length: 20 }, (_, i) => `${path}-${i}`);
      for (const link of paths) Deno.linkSync(path, link);
      try {
        const reads = paths.map((link) =>
          libc.readDirect(link, start, over.signal).then(() => "read", () => "not")
        );
        await eventually(() => hanging.under() === 6);
        assert.equal(await libc.canOpenExclusively(path, AbortSignal.timeout(1000)), true);
        hanging.release();
        assert.deepEqual(new Set(await Promise.all(reads)), new Set(["read"]));
        assert.equal(hanging.most(), 6);
      } finally {
        for (const link of paths) Deno.removeSync(link);
      }
    });
  }));

Deno.test("readDirect() leaves one read on a device that hangs, whatever else is opened and closed", () =>
  withLibc(async (libc) => {
    await withFile(1 << 20, async (path) => {
      using hanging = hangingCalls("preadWaiting");
      const held = await libc.hold(path, never);
      const over = new AbortController();
      const given = libc.readDirect(path, start, over.signal);
      await eventually(() => hanging.under() === 1);
      over.abort();
      const refused = (error: unknown) => VolumeError.is(error, "unavailable");
      await assert.rejects(given, refused);
      await held!.release();
      await assert.rejects(libc.readDirect(path, start, never), refused);
      assert.deepEqual([hanging.under(), openOf(libc, path)], [1, 1]);
      hanging.release();
      await eventually(() => libc.readDirect(path, start, never).then(() => true, () => false));
      assert.deepEqual([hanging.under(), openOf(libc, path)], [0, 0]);
    });
  }));

Deno.test("flush() is false for a missing path, and for what cannot be flushed", () =>
  withLibc(async (libc) => {
    assert.equal(await libc.flush("/dev/nothing", never), false);
    assert.equal(await libc.flush("/dev/null", never), false);
    await assert.rejects(libc.flush("/dev/null", AbortSignal.abort()), refusal("unavailable", /too long/));
  }));

Deno.test("flush() of a device that hangs is refused from then on, and does not prevent opening and reading it", () =>
  withLibc(async (libc) => {
    await withFile(1 << 20, async (path) => {
      using hanging = hangingCalls("fsyncWaiting");
      const over = new AbortController();
      const given = libc.flush(path, over.signal);
      await eventually(() => hanging.under() === 1);
      over.abort();
      await assert.rejects(given, refusal("unavailable", /too long/));
      await assert.rejects(libc.flush(path, never), refusal("unavailable", /earlier flush of it hangs/));
      assert.equal(await libc.canOpenExclusively(path, never), true);
      assert.equal((await libc.readDirect(path, start, never))[0]!.length, 4096);
      assert.deepEqual([hanging.under(), openOf(libc, path)], [1, 1]);
      hanging.release();
      await eventually(() => libc.flush(path, never).then((flushed) => flushed, () => false));
      assert.deepEqual([hanging.under(), openOf(libc, path)], [0, 0]);
    });
  }));

/** A file in which each MiB contains its number, from 1, on a file system with direct reads. */
async function withFile(sizeBytes: number, use: (path: string) => Promise<void>): Promise<void> {
  const path = Deno.makeTempFileSync({ dir: "/var/tmp", prefix: "rds-csi-test-" });
  try {
    const bytes = new Uint8Array(sizeBytes);
    for (let at = 0; at < sizeBytes; at += 1 << 20) bytes.fill((at >> 20) + 1, at, at + (1 << 20));
    Deno.writeFileSync(path, bytes);
    await use(path);
  } finally {
    Deno.removeSync(path);
  }
}

Deno.test("readText() reads an attribute of /sys, also an empty one and one of several lines", () =>
  withLibc((libc) => {
    for (const path of ["/sys/class/net/lo/mtu", "/sys/class/net/lo/ifalias", "/sys/class/net/lo/uevent"]) {
      assert.equal(libc.readText(path), Deno.readTextFileSync(path).replace(/\n$/, ""), path);
    }
  }));

Deno.test("memoryFile() makes a file that other processes read and write by its path, until it is released", () =>
  withLibc(async (libc) => {
    const file = libc.memoryFile(new Uint8Array([1, 2, 3]), 1 << 20);
    try {
      const read = Deno.readFileSync(file.path);
      assert.deepEqual([read.length, [...read.subarray(0, 4)]], [1 << 20, [1, 2, 3, 0]]);
      const { code } = await new Deno.Command("dd", {
        args: ["if=/dev/zero", `of=${file.path}`, "bs=1", "count=1", "seek=1", "conv=notrunc", "status=none"],
      }).output();
      assert.equal(code, 0);
      assert.deepEqual([...file.read(4)], [1, 0, 3, 0]);
      assert.throws(() => file.read(2 << 20), refusal("unavailable", /memory/));
    } finally {
      file.release();
    }
    file.release();
    assert.throws(() => Deno.statSync(file.path), Deno.errors.NotFound);
  }));
