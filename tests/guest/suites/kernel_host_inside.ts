import assert from "node:assert/strict";
import { connectSubsystem } from "../../../src/nvme/host_connection.ts";
import { GuestVolume, NodeTests, ownHost, sh } from "../kit/node.ts";
import { targetPort } from "../kit/nvmet.ts";
import { call } from "../../node/harness.ts";

const sizeBytes = 32 << 20;
const blockBytes = 512;

/** What a host in this process makes of the kernel's target: a router has the same one, over loop devices too. */
export const hostRows = new NodeTests();

hostRows.add(
  "a host in this process writes, flushes, reads and discards, and the file below the loop device takes less room",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", BigInt(sizeBytes));
    volume.withdraw();
    volume.device = await sh(`losetup -f --show ${volume.image}`);
    try {
      volume.export();
      const [address = ""] = node.nvmet.addresses;
      const where = { address, port: targetPort, nqn: volume.nqn, ...ownHost };
      await using host = await connectSubsystem(where, call());
      assert.equal(host.takesDiscards, true);
      const before = await taken(volume);
      const data = new Uint8Array(sizeBytes / 2);
      for (let at = 0; at < data.length; at += 65_536) crypto.getRandomValues(data.subarray(at, at + 65_536));
      await host.write(0n, data, call());
      await host.flush(call());
      assert.deepEqual(await host.read(0n, data.length / blockBytes, call()), data);
      assert.deepEqual((await Deno.readFile(volume.image)).subarray(0, data.length), data);
      const filled = await taken(volume);
      assert.ok(filled - before >= data.length, `${before} ${filled}`);
      await host.discard(0n, sizeBytes / blockBytes, call());
      await host.flush(call());
      const trimmed = await taken(volume);
      assert.ok(filled - trimmed >= data.length, `${filled} ${trimmed}`);
      assert.ok((await host.read(0n, 8, call())).every((byte) => byte === 0));
      return `from ${before} to ${filled} and back to ${trimmed} bytes`;
    } finally {
      volume.withdraw();
      await sh(`losetup -d ${volume.device}`);
      delete volume.device;
    }
  },
);

/** Bytes that the image takes. */
async function taken({ image }: GuestVolume): Promise<number> {
  return Number(await sh(`sync; stat -c %b ${image}`)) * 512;
}
