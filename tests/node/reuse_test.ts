import assert from "node:assert/strict";
import type { ToolName } from "../../src/host/tools.ts";
import { block, ext4, nodeTest, RealNode, TestVolume } from "./harness.ts";
import { runsOf, wrappedTool } from "./wrapped_tool.ts";

const small = 64n * 1024n * 1024n;

/** Gives the name and the number of the device to another file before the tool uses them. */
function swapping(folder: string, name: ToolName, other: string): ReturnType<typeof wrappedTool> {
  const device = 'dev=$(for word in "$@"; do case "$word" in /dev/loop*) echo "$word";; esac; done)';
  const swap = `losetup -d "$dev"; losetup "$dev" ${other} || true`;
  return wrappedTool(
    folder,
    name,
    `${device}\n[ "$times" = 1 ] && { ${swap}; } 2> /dev/null\nexec "$tool" "$@"`,
  );
}

/** A loop device that was detached while it was open may be gone: then nothing is written, which is fine too. */
async function tryToWrite(path: string): Promise<void> {
  try {
    using file = await Deno.open(path, { write: true });
    await file.write(new Uint8Array(4096).fill(1));
  } catch (error) {
    if (!(error instanceof Error) || !/ENXIO|ENOSPC|No space left|No such device/.test(error.message)) {
      throw error;
    }
  }
}

for (const [name, capability] of [["mkfs.ext4", ext4], ["mount", ext4], ["mount", block]] as const) {
  nodeTest(
    `a device whose name is to be given to another volume right before ${name} (${capability.access}) stays this volume's`,
    async ({ folder }) => {
      const other = `${folder}/other.img`;
      await Deno.writeFile(other, new Uint8Array(Number(small)));
      const node = new RealNode(folder, "node-2", { toolPaths: swapping(folder, name, other) });
      try {
        const volume = new TestVolume(node, "pvc-1", small);
        await node.stage(volume, { capability });
        await node.publish(volume, { capability });
        assert.ok(runsOf(folder, name) > 0);
        if (capability === block) await tryToWrite(node.target(volume.id));
        assert.equal((await Deno.readFile(other)).findIndex((byte) => byte !== 0), -1);
        await node.unpublish(volume);
        await node.unstage(volume);
      } finally {
        node.libc.close();
      }
    },
  );
}
