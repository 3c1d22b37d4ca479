import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { VolumeError } from "../../volume/errors.ts";
import { connect, openSockets, serverTest, TestBench } from "../../../tests/support/csi_server.ts";
import { eventually } from "../../../tests/support/eventually.ts";

/** Both ways of serving a unix socket; both are the same where this Deno needs the fallback. */
const WAYS = [["", Deno.version.deno], [" of an old Deno", "2.7.11"]] as const;

function isPrecondition(error: unknown): true {
  assert.ok(VolumeError.is(error, "precondition"), String(error));
  return true;
}

/** A socket without a listener, as a killed process leaves it. */
async function staleSocket(path: string): Promise<void> {
  // A listener may remove the name to which it was bound when it is closed; the socket has another name by then.
  const listener = Deno.listen({ transport: "unix", path: `${path}.bound` });
  await Deno.rename(`${path}.bound`, path);
  listener.close();
}

/**
 * Reads `path` repeatedly on another thread, from before it exists until 20 ms after it was first seen; resolves with
 * the modes that it saw.
 */
async function watchModes(
  path: string,
): Promise<{ readonly modes: Promise<readonly string[]>; stop(): void }> {
  const source = `
    self.postMessage("ready");
    const modes = new Set();
    const end = performance.now() + 10000;
    for (let last = end; performance.now() < last;) {
      try {
        modes.add((Deno.lstatSync(${JSON.stringify(path)}).mode & 0o7777).toString(8));
        last = Math.min(last, performance.now() + 20);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
    self.postMessage([...modes]);`;
  const worker = new Worker(`data:application/javascript,${encodeURIComponent(source)}`, { type: "module" });
  const ready = Promise.withResolvers<void>();
  const modes = Promise.withResolvers<readonly string[]>();
  worker.onmessage = ({ data }) => data === "ready" ? ready.resolve() : modes.resolve(data);
  await ready.promise;
  return { modes: modes.promise, stop: () => worker.terminate() };
}

for (const [way, denoVersion] of WAYS) {
  serverTest(`startServer() shows a unix socket${way} with mode 0660 from the beginning`, async () => {
    await using bench = await TestBench.make();
    const umask = Deno.umask(0);
    const watch = await watchModes(bench.socketPath);
    try {
      await bench.start({ denoVersion });
      assert.deepEqual(await watch.modes, ["660"]);
    } finally {
      watch.stop();
      Deno.umask(umask);
    }
  });

  serverTest(`startServer() leaves nothing beside its unix socket${way}`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start({ denoVersion });
    assert.deepEqual([...Deno.readDirSync(bench.folder)].map((entry) => entry.name), ["csi.sock"]);
    assert.equal(server.address, `unix://${bench.socketPath}`);
    await server.stop({ graceMs: 0 });
    assert.deepEqual([...Deno.readDirSync(bench.folder)], []);
  });

  serverTest(`startServer() replaces a stale unix socket${way}`, async () => {
    await using bench = await TestBench.make();
    await staleSocket(bench.socketPath);
    const server = await bench.start({ denoVersion });
    assert.equal((await bench.clients(server).call("Identity/Probe")).code, "OK");
  });

  serverTest(
    `startServer() refuses a unix socket${way} on which somebody answers, and leaves it alone`,
    async () => {
      await using bench = await TestBench.make();
      const first = await bench.start({ denoVersion });
      await assert.rejects(bench.start({ denoVersion }), isPrecondition);
      assert.equal((await bench.clients(first).call("Identity/Probe")).code, "OK");
      assert.deepEqual([...Deno.readDirSync(bench.folder)].map((entry) => entry.name), ["csi.sock"]);
    },
  );

  serverTest(`startServer() never removes what is not a unix socket${way}`, async () => {
    const table: readonly [string, (path: string) => void][] = [
      ["file", (path) => Deno.writeTextFileSync(path, "precious")],
      ["folder", (path) => Deno.mkdirSync(path)],
      ["link", (path) => Deno.symlinkSync("/nowhere", path)],
    ];
    for (const [kind, put] of table) {
      await using bench = await TestBench.make();
      put(bench.socketPath);
      const before = Deno.lstatSync(bench.socketPath);
      await assert.rejects(bench.start({ denoVersion }), isPrecondition, kind);
      assert.equal(Deno.lstatSync(bench.socketPath).ino, before.ino, kind);
      assert.equal([...Deno.readDirSync(bench.folder)].length, 1, kind);
    }
  });

  serverTest(`RunningServer.stop() leaves a unix socket${way} that has replaced its own`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start({ denoVersion });
    await Deno.remove(bench.socketPath);
    const other = Deno.listen({ transport: "unix", path: bench.socketPath });
    try {
      await server.stop({ graceMs: 0 });
      assert.equal((await Deno.lstat(bench.socketPath)).isSocket, true);
    } finally {
      other.close();
    }
  });

  serverTest(`RunningServer.stop() on a unix socket${way} accepts that the socket is gone`, async () => {
    await using bench = await TestBench.make();
    const server = await bench.start({ denoVersion });
    await Deno.remove(bench.socketPath);
    await server.stop({ graceMs: 0 });
    assert.equal(
      bench.lines.some((line) => line.level === "WARN" && String(line.message).includes("cleanly")),
      false,
    );
  });

  serverTest(
    `startServer() leaves nothing behind when its unix socket${way} cannot be put in its place`,
    async () => {
      await using bench = await TestBench.make();
      // Called for a temporary name after the check of the path: the moment to put something in its place.
      const random = new SeededRandom();
      const bytes = (count: number) => {
        Deno.mkdirSync(`${bench.socketPath}/full`, { recursive: true });
        return random.bytes(count);
      };
      await assert.rejects(bench.start({ denoVersion, random: { bytes, fraction: () => 0 } }));
      assert.deepEqual([...Deno.readDirSync(bench.folder)].map((entry) => entry.name), ["csi.sock"]);
      await eventually(() => openSockets(bench.folder) === 0);
    },
  );

  serverTest(`startServer() can be started again on the unix socket${way} that it has left`, async () => {
    await using bench = await TestBench.make();
    for (let i = 0; i < 3; i++) {
      const server = await bench.start({ denoVersion });
      assert.equal((await bench.clients(server).call("Identity/Probe")).code, "OK");
      await server.stop({ graceMs: 0 });
      await assert.rejects(connect(server.address));
    }
  });
}

serverTest("startServer() replaces the unix socket of a server that was killed", async () => {
  await using bench = await TestBench.make();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "eval",
      `for await (const _ of Deno.listen({ transport: "unix", path: ${JSON.stringify(bench.socketPath)} }));`,
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await eventually(() => [...Deno.readDirSync(bench.folder)].length === 1, 20_000);
    await assert.rejects(bench.start(), isPrecondition);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
  const server = await bench.start();
  assert.equal((await bench.clients(server).call("Identity/Probe")).code, "OK");
});

serverTest("startServer() throws unavailable and leaves nothing when the folder does not exist", async () => {
  await using bench = await TestBench.make();
  await assert.rejects(bench.start({ endpoint: `unix://${bench.folder}/missing/csi.sock` }));
  assert.deepEqual([...Deno.readDirSync(bench.folder)], []);
});

serverTest("startServer() serves a unix socket with odd characters in its path", async () => {
  await using bench = await TestBench.make();
  const folder = `${bench.folder}/a b%2F#?:ü`;
  await Deno.mkdir(folder);
  const server = await bench.start({ endpoint: `${folder}/csi.sock` });
  assert.equal((await bench.clients(server).call("Identity/Probe")).code, "OK");
});

serverTest("startServer() serves a unix socket with a path of 107 bytes", async () => {
  await using bench = await TestBench.make();
  const path = `${bench.folder}/${"x".repeat(107 - bench.folder.length - 1)}`;
  const server = await bench.start({ endpoint: path });
  assert.equal((await bench.clients(server).call("Identity/Probe")).code, "OK");
});
