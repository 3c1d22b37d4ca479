import assert from "node:assert/strict";
import { BINARY, isBuilt } from "./binary.ts";
import { loopsUnder, mountsUnder } from "../support/left_here.ts";
import { makeScratch } from "../support/scratch.ts";

/** The longest time that a demo may take in these tests. */
const limitMs = 90_000;
const isRoot = Deno.uid() === 0;

interface Run {
  readonly code: number;
  readonly text: string;
}

/** A folder for the scratch folders of one test's demos: others may run at the same time. */
async function makeFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-build-" });
  await Deno.chmod(folder, 0o777);
  return folder;
}

/** Runs the demo. Sends SIGINT as soon as the driver's log contains the text `interruptAt`. */
async function runDemo(
  folder: string,
  program: string,
  args: readonly string[],
  interruptAt?: RegExp,
): Promise<Run> {
  const signal = AbortSignal.timeout(limitMs);
  const child = new Deno.Command(program, {
    args: [...args],
    env: { TMPDIR: folder },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal,
  }).spawn();
  let text = "";
  let interrupted = false;
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (interruptAt === undefined || interrupted || !interruptAt.test(text)) continue;
      interrupted = true;
      assert.ok(
        [...Deno.readDirSync(folder)].length > 0,
        "it uses the folder that is searched for what it leaves",
      );
      child.kill("SIGINT");
    }
  };
  await Promise.all([collect(child.stdout), collect(child.stderr)]);
  const { code } = await child.status;
  if (interruptAt !== undefined) assert.ok(interrupted, `never came to ${interruptAt}:\n${text}`);
  return { code, text };
}

/** Returns mounts and loop devices in a folder, and the folder's content. */
async function traces(folder: string): Promise<string[]> {
  const left = [...Deno.readDirSync(folder)].map(({ name }) => name);
  return [...mountsUnder(folder), ...await loopsUnder(folder), ...left];
}

async function leavesNothing(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await makeFolder();
  await use(folder);
  assert.deepEqual(await traces(folder), []);
  await Deno.remove(folder);
}

Deno.test({
  name: "the demo of the executable ends with demo: ok, and leaves nothing behind",
  ignore: !isBuilt || !isRoot,
  fn: () =>
    leavesNothing(async (folder) => {
      const { code, text } = await runDemo(folder, BINARY, ["demo", "--timing-scale", "0"]);
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
      leavesNothing(async (folder) => {
        const { code, text } = await runDemo(
          folder,
          BINARY,
          ["demo", "--timing-scale", "0", "--verbose"],
          sign,
        );
        assert.match(text, /^demo: failed$/m);
        assert.notEqual(code, 0);
      }),
  });
}

Deno.test({
  name: "the demo leaves nothing behind when it fails, and says why",
  ignore: !isBuilt || !isRoot,
  fn: () =>
    leavesNothing(async (folder) => {
      const broken = ["/usr/sbin/mkfs.xfs", "/usr/sbin/mkfs.ext4"].map((tool) =>
        `mount --bind /bin/false ${tool}`
      );
      const script = `${broken.join(" && ")} && exec "$1" demo --timing-scale 0`;
      const { code, text } = await runDemo(folder, "unshare", ["--mount", "sh", "-c", script, "sh", BINARY]);
      assert.match(text, /^demo: .*mkfs/m);
      assert.match(text, /^demo: failed$/m);
      assert.equal(code, 1);
    }),
});

Deno.test({
  name: "the demo without root says what it cannot show, and runs the controller's half",
  ignore: !isBuilt || !isRoot,
  fn: async () => {
    await using scratch = await makeScratch();
    const location = scratch.path;
    // Other users may not be able to read the project's folder.
    await Deno.copyFile(BINARY, `${location}/rds-csi`);
    await Deno.chmod(location, 0o755);
    await Deno.chmod(`${location}/rds-csi`, 0o755);
    await leavesNothing(async (folder) => {
      const nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", `${location}/rds-csi`];
      const { code, text } = await runDemo(folder, "setpriv", [...nobody, "demo", "--timing-scale", "0"]);
      assert.match(text, /only the controller's half can be shown: it needs root/);
      assert.match(text, /block: ControllerExpandVolume/);
      assert.doesNotMatch(text, /NodeStageVolume/);
      assert.match(text, /^demo: ok$/m);
      assert.equal(code, 0, text);
    });
  },
});
