// Headers by the real cryptsetup, on a loop device. What needs device mapper is tested in guests.

import assert from "node:assert/strict";
import { Cryptsetup } from "../../src/device_mapper/cryptsetup.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Processes } from "../../src/host/processes.ts";
import { spawnProcess } from "../../src/host/spawn.ts";
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

/** Derives keys in few steps: to measure how many take the wanted time costs two seconds for each key. */
function cryptsetup(node: RealNode): Cryptsetup {
  const quick: Pick<Processes, "run"> = {
    run: (tool, options) => {
      const at = options.args.indexOf("--iter-time");
      const args = at < 0 ? options.args : options.args.toSpliced(at, 2, "--pbkdf-force-iterations", "4");
      return node.processes.run(tool, { ...options, args });
    },
  };
  return new Cryptsetup(quick, node.libc, { find: () => Promise.resolve(undefined) }, systemClock);
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

/** Where the copies of the header begin, and what each takes (LUKS2 On-Disk Format, "Basic Layout"). */
const copies = [0, 16_384] as const;

/** Writes to a device, past this process's caches. */
async function overwrite(path: string, offset: number, bytes: Uint8Array): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.seek(offset, Deno.SeekMode.Start);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  await file.sync();
}

const noise = (length: number) => crypto.getRandomValues(new Uint8Array(length));

nodeTest(
  "one damaged copy of a header leaves the volume its own, and opens; two leave something that is not blank",
  async (node) => {
    const encryption = cryptsetup(node);
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const probe = () => node.deps.filesystems.probe(device, call());
      await encryption.format(device, current, cost, call());
      await encryption.complete(device, call());
      const passphrases = [current, next];
      for (const copy of copies) {
        for (const length of [8, 16_384]) {
          await overwrite(device.path, copy, noise(length));
          const { signature } = await probe();
          assert.deepEqual(
            signature.state === "found" && [signature.type, signature.label],
            ["crypto_LUKS", "rds-csi"],
            `${length} bytes at ${copy}`,
          );
        }
        // What writes the header repairs its other copy.
        const [from, to] = passphrases;
        const change = { current: from!, next: to! };
        await encryption.replacePassphrase("rds-csi-pvc-1", device, change, cost, call());
        passphrases.reverse();
      }
      for (const copy of copies) await overwrite(device.path, copy, noise(16_384));
      assert.deepEqual(await probe(), { signature: { state: "none" }, blank: false });
      for (const copy of copies) await overwrite(device.path, copy, new Uint8Array(16_384));
      assert.deepEqual(await probe(), { signature: { state: "none" }, blank: false });
    });
  },
  lacking,
);

nodeTest(
  "a label that was written by half stays a complete one when the passphrase is changed",
  async (node) => {
    const encryption = cryptsetup(node);
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      await encryption.format(device, current, cost, call());
      // As after a kill: cryptsetup writes the new label before the checksum, and the second copy last.
      const label = new Uint8Array(48);
      label.set(new TextEncoder().encode("rds-csi"));
      await overwrite(device.path, 24, label);
      await overwrite(device.path, 448, new Uint8Array(64));
      const labels = async () => {
        const { signature } = await node.deps.filesystems.probe(device, call());
        const dump = await run("cryptsetup", "luksDump", "--disable-locks", device.path);
        return [signature.state === "found" && signature.label, /^Label:\s*(.*)$/m.exec(dump)![1]];
      };
      assert.deepEqual(await labels(), ["rds-csi", "rds-csi-unfinished"]);
      await encryption.replacePassphrase("rds-csi-pvc-1", device, { current, next }, cost, call());
      assert.deepEqual(await labels(), ["rds-csi", "rds-csi"]);
    });
  },
  lacking,
);

nodeTest(
  "a luksFormat that is killed at any moment can be begun anew, and leaves no complete header",
  async (node) => {
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const encryption = cryptsetup(node);
      for (const delayMs of [0, 20, 80, 160]) {
        const impatient = new Cryptsetup(
          { run: (_tool, { args, input }) => killedAfter(delayMs, args, input!) },
          node.libc,
          { find: () => Promise.resolve(undefined) },
          systemClock,
        );
        await impatient.format(device, current, cost, call()).catch(() => {});
        const { signature } = await node.deps.filesystems.probe(device, call());
        if (signature.state === "found") assert.equal(signature.label, "rds-csi-unfinished");
        else assert.equal(signature.state, "none");
        await node.deps.filesystems.eraseEnds(device, call());
        await encryption.format(device, current, cost, call());
        assert.equal(await keys(device.path), 1);
      }
    });
  },
  lacking,
);

/** cryptsetup itself, which SIGKILL ends so much later. */
async function killedAfter(delayMs: number, args: readonly string[], input: string) {
  const child = spawnProcess(systemToolPaths.cryptsetup[0]!, args, input);
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  child.kill();
  return await child.result;
}

nodeTest(
  "a passphrase is taken byte for byte: zero bytes, line feeds and a mark of the byte order",
  async (node) => {
    const encryption = cryptsetup(node);
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const exact = ["\0".repeat(20), `${current}\n`, `\uFEFF${current}\r\n\0`];
      let known = current;
      await encryption.format(device, known, cost, call());
      for (const passphrase of exact) {
        const change = { current: known, next: passphrase };
        await encryption.replacePassphrase("rds-csi-pvc-1", device, change, cost, call());
        const near = passphrase.slice(0, -1);
        const wrong = { current: near, next: `${near}?` };
        const replacing = encryption.replacePassphrase("rds-csi-pvc-2", device, wrong, cost, call());
        await rejectsWith(replacing, "unauthenticated");
        known = passphrase;
      }
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
