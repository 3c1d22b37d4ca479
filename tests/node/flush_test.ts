import assert from "node:assert/strict";
import { nodeTest, run } from "./harness.ts";

nodeTest("a flush is no success when the device refuses what was written to it", async (node) => {
  const [folder, mebibyte] = [`${node.folder}/small`, 1 << 20];
  await Deno.mkdir(folder);
  await run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder);
  try {
    await Deno.writeFile(`${folder}/image`, new Uint8Array());
    await Deno.truncate(`${folder}/image`, 16 * mebibyte);
    const device = (await run("losetup", "-f", "--show", `${folder}/image`)).trim();
    try {
      const { signal } = new AbortController();
      assert.equal(await node.libc.flush(device, signal), true);
      using file = await Deno.open(device, { write: true });
      await file.write(new Uint8Array(8 * mebibyte).fill(1));
      assert.equal(await node.libc.flush(device, signal), false);
    } finally {
      await run("losetup", "-d", device);
    }
  } finally {
    await run("umount", folder);
  }
});
