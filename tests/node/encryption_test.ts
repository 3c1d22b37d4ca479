// Headers by the real cryptsetup, on a loop device. What needs device mapper is tested in guests.

import assert from "node:assert/strict";
import { Cryptsetup } from "../../src/device_mapper/cryptsetup.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemToolPaths } from "../../src/host/tools.ts";
import { print } from "../../tools/print.ts";
import { provenDevice } from "../fakes/devices.ts";
import { rejectsWith } from "../fakes/volume_errors.ts";
import { call, ext4, nodeTest, type RealNode, run, TestVolume } from "./harness.ts";

const isHere = systemToolPaths.cryptsetup.some((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});
const lacking = isHere ? undefined : "there is no cryptsetup";
if (lacking !== undefined) print(`ignored: ${lacking}`);

const current = "correct horse\nbattery staple ä";
const next = "another passphrase, as long as it";
const cost = { memoryMiB: 32, timeMs: 100 };
const sizeBytes = 64n << 20n;

/** Runs `use` with a loop device on a volume's image. */
async function withDevice(
  volume: TestVolume,
  use: (device: ReturnType<typeof provenDevice>) => Promise<void>,
): Promise<void> {
  const path = (await run("losetup", "--find", "--show", volume.image)).trim();
  try {
    const deviceNumber = (await run("stat", "-c", "%Hr:%Lr", path)).trim();
    await use(provenDevice({ path, deviceNumber, sizeBytes }));
  } finally {
    await run("losetup", "--detach", path);
  }
}

function cryptsetup(node: RealNode): Cryptsetup {
  return new Cryptsetup(node.processes, node.libc, { find: () => Promise.resolve(undefined) }, systemClock);
}

async function keys(path: string): Promise<number> {
  const { keyslots } = JSON.parse(await run("cryptsetup", "luksDump", "--dump-json-metadata", path));
  return Object.keys(keyslots).length;
}

nodeTest(
  "a header says what it is, and its passphrase is replaced whatever was interrupted",
  async (node) => {
    const encryption = cryptsetup(node);
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const label = async () => {
        const { signature } = await node.deps.filesystems.probe(device, call());
        return signature.state === "found" ? `${signature.type} ${signature.label}` : signature.state;
      };
      await encryption.format(device, current, cost, call());
      assert.equal(await label(), "crypto_LUKS rds-csi-unfinished");
      await encryption.complete(device, call());
      assert.equal(await label(), "crypto_LUKS rds-csi");
      const replace = (current: string, next: string) =>
        encryption.replacePassphrase("rds-csi-pvc-1", device, { current, next }, cost, call());
      await rejectsWith(replace("neither of the two passphrases", next), "unauthenticated");
      assert.equal(await keys(device.path), 1);
      await replace(current, next);
      assert.equal(await keys(device.path), 1);
      await replace(current, next);
      await replace(next, current);
      // As after a kill between adding one and removing the other.
      const both = new Cryptsetup(
        {
          run: (tool, options) =>
            options.args[0] === "luksRemoveKey"
              ? Promise.reject(new Error("killed"))
              : node.processes.run(tool, options),
        },
        node.libc,
        { find: () => Promise.resolve(undefined) },
        systemClock,
      );
      const passphrases = { current, next };
      await assert.rejects(
        both.replacePassphrase("rds-csi-pvc-1", device, passphrases, cost, call()),
        /killed/,
      );
      assert.equal(await keys(device.path), 2);
      await replace(current, next);
      assert.equal(await keys(device.path), 1);
    });
  },
  lacking,
);

nodeTest("a volume without encryption whose image has a header is not formatted", async (node) => {
  const volume = new TestVolume(node, "pvc-1", sizeBytes);
  await withDevice(volume, (device) => cryptsetup(node).format(device, current, cost, call()));
  const before = await run("sha256sum", volume.image);
  await rejectsWith(
    node.stage(volume, { capability: ext4 }),
    "precondition",
    /it holds crypto_LUKS, not ext4/,
  );
  assert.equal(await run("sha256sum", volume.image), before);
}, lacking);
