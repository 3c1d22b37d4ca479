import assert from "node:assert/strict";
import { BINARY, isBuilt } from "./binary.ts";

/** Longest that a demo may take here. */
const limitMs = 90_000;
const isRoot = Deno.uid() === 0;

interface Run {
  readonly code: number;
  readonly text: string;
}

/** Runs the demo; `interruptAt` sends SIGINT as soon as that stands in what the driver logs. */
async function runDemo(program: string, args: readonly string[], interruptAt?: RegExp): Promise<Run> {
  const signal = AbortSignal.timeout(limitMs);
  const child = new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal,
  })
    .spawn();
  let text = "";
  let interrupted = false;
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (interruptAt === undefined || interrupted || !interruptAt.test(text)) continue;
      interrupted = true;
      child.kill("SIGINT");
    }
  };
  await Promise.all([collect(child.stdout), collect(child.stderr)]);
  const { code } = await child.status;
  if (interruptAt !== undefined) assert.ok(interrupted, `never came to ${interruptAt}:\n${text}`);
  return { code, text };
}

/** Mounts, loop devices and scratch folders of demos. */
async function traces(): Promise<string[]> {
  const mounts = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n");
  const { stdout } = await new Deno.Command("losetup", {
    args: ["--list", "--noheadings", "-O", "BACK-FILE"],
  }).output();
  const loops = new TextDecoder().decode(stdout).split("\n");
  const folders = [...Deno.readDirSync("/tmp")].map((entry) => entry.name);
  return [...mounts, ...loops, ...folders].filter((line) => line.includes("rds-csi-demo-")).toSorted();
}

async function leavesNothing(use: () => Promise<void>): Promise<void> {
  const before = await traces();
  await use();
  assert.deepEqual(await traces(), before);
}

Deno.test({
  name: "the demo of the executable ends with demo: ok, and leaves nothing behind",
  ignore: !isBuilt || !isRoot,
  fn: () =>
    leavesNothing(async () => {
      const { code, text } = await runDemo(BINARY, ["demo", "--timing-scale", "0"]);
      assert.match(text, /^demo: ok$/m);
      assert.equal(code, 0, text);
    }),
});

const moments: readonly [string, RegExp][] = [
  ["a volume is made", /CreateVolume","volumeId":"[^"]+","code":"OK"/],
  ["a volume is staged", /NodeStageVolume","volumeId":"[^"]+","code":"OK"/],
  ["a volume is published", /NodePublishVolume","volumeId":"[^"]+","code":"OK"/],
];

for (const [moment, sign] of moments) {
  Deno.test({
    name: `the demo leaves nothing behind when it is interrupted as ${moment}`,
    ignore: !isBuilt || !isRoot,
    fn: () =>
      leavesNothing(async () => {
        const { code, text } = await runDemo(BINARY, ["demo", "--timing-scale", "0", "--verbose"], sign);
        assert.match(text, /^demo: failed$/m);
        assert.notEqual(code, 0);
      }),
  });
}

Deno.test({
  name: "the demo leaves nothing behind when it fails, and says why",
  ignore: !isBuilt || !isRoot,
  fn: () =>
    leavesNothing(async () => {
      const broken = ["/usr/sbin/mkfs.xfs", "/usr/sbin/mkfs.ext4"].map((tool) =>
        `mount --bind /bin/false ${tool}`
      );
      const script = `${broken.join(" && ")} && exec "$1" demo --timing-scale 0`;
      const { code, text } = await runDemo("unshare", ["--mount", "sh", "-c", script, "sh", BINARY]);
      assert.match(text, /^demo: .*mkfs/m);
      assert.match(text, /^demo: failed$/m);
      assert.equal(code, 1);
    }),
});

Deno.test({
  name: "the demo without root says what it cannot show, and runs the controller's half",
  ignore: !isBuilt || !isRoot,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "rds-csi-build-" });
    try {
      // Where the project lies may be closed to others.
      await Deno.copyFile(BINARY, `${folder}/rds-csi`);
      await Deno.chmod(folder, 0o755);
      await Deno.chmod(`${folder}/rds-csi`, 0o755);
      await leavesNothing(async () => {
        const nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", `${folder}/rds-csi`];
        const { code, text } = await runDemo("setpriv", [...nobody, "demo", "--timing-scale", "0"]);
        assert.match(text, /only the controller's half can be shown: it needs root/);
        assert.match(text, /block: ControllerExpandVolume/);
        assert.doesNotMatch(text, /NodeStageVolume/);
        assert.match(text, /^demo: ok$/m);
        assert.equal(code, 0, text);
      });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
