// Headers by the real cryptsetup, on a loop device. What needs device mapper is tested in guests.

import assert from "node:assert/strict";
import { Cryptsetup } from "../../src/device_mapper/cryptsetup.ts";
import { formatHeader, parseHeader } from "../../src/device_mapper/luks_header.ts";
import type { LuksMetadata } from "../../src/device_mapper/luks_metadata.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Processes } from "../../src/host/processes.ts";
import { spawnProcess } from "../../src/host/spawn.ts";
import { systemToolPaths } from "../../src/host/tools.ts";
import { print } from "../../tools/print.ts";
import { provenDevice } from "../fakes/devices.ts";
import type { Metadata } from "../fakes/luks_header.ts";
import { rejectsWith } from "../fakes/volume_errors.ts";
import { call, checksum, ext4, nodeTest, type RealNode, run, TestVolume } from "./harness.ts";

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
const cost = { memoryMiB: 1, timeMs: 100 };
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
function cryptsetup(
  node: RealNode,
  before: (tool: string, args: readonly string[]) => void | Promise<void> = () => {},
): Cryptsetup {
  const quick: Pick<Processes, "run"> = {
    run: async (tool, options) => {
      await before(tool, options.args);
      const at = options.args.indexOf("--iter-time");
      const args = at < 0 ? options.args : options.args.toSpliced(at, 2, "--pbkdf-force-iterations", "4");
      return await node.processes.run(tool, { ...options, args });
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
      // As a person makes it who wants to be sure.
      await addKey(device.path, current, next);
      assert.equal(await keys(device.path), 2);
      await replace(current, next);
      assert.equal(await keys(device.path), 1);
    });
  },
  lacking,
);

/** Adds a passphrase by hand. */
async function addKey(path: string, known: string, added: string): Promise<void> {
  const args = ["luksAddKey", path, "-", "--pbkdf-memory", "1024", "--pbkdf-force-iterations", "4"];
  const size = ["--key-file=-", "--keyfile-size", String(new TextEncoder().encode(known).length)];
  const child = spawnProcess(
    systemToolPaths.cryptsetup[0]!,
    [...args, ...size, "--batch-mode"],
    known + added,
  );
  const { code, stderr } = await child.result;
  assert.equal(code, 0, stderr);
}

/** Whether a passphrase opens the header on the device, as cryptsetup itself reads it. */
async function opens(path: string, passphrase: string): Promise<boolean> {
  const args = ["open", path, "--test-passphrase", "--disable-locks", "--key-file=-"];
  return (await spawnProcess(systemToolPaths.cryptsetup[0]!, args, passphrase).result).code === 0;
}

nodeTest(
  "a change of the passphrase that ends before any of its writes leaves one that opens, whichever copy is damaged",
  async (node) => {
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const encryption = cryptsetup(node);
      for (const damaged of [undefined, ...copies]) {
        for (let writes = 0; writes < 4; writes++) {
          await encryption.format(device, current, cost, call());
          if (damaged !== undefined) await overwrite(device.path, damaged, noise(16_384));
          let left = writes;
          const broken = cryptsetup(node, (tool) => {
            if (tool === "dd" && left-- === 0) throw new Error("killed");
          });
          const change = { current, next };
          const replacing = broken.replacePassphrase("rds-csi-pvc-1", device, change, cost, call());
          await assert.rejects(replacing, /killed/);
          const [old, now] = [await opens(device.path, current), await opens(device.path, next)];
          assert.notEqual(old, now, `${writes} writes, damaged at ${damaged}`);
          await encryption.replacePassphrase("rds-csi-pvc-1", device, change, cost, call());
          assert.deepEqual([await opens(device.path, current), await opens(device.path, next)], [
            false,
            true,
          ]);
          assert.equal(await keys(device.path), 1);
        }
      }
    });
  },
  lacking,
);

nodeTest(
  "a header that cryptsetup would open without encryption is refused, and so are costs that exhaust a node",
  async (node) => {
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      const encryption = cryptsetup(node);
      const change = { current, next };
      for (const [field, alter] of Object.entries(attacks)) {
        await encryption.format(device, current, cost, call());
        const header = parseHeader(
          await Deno.readFile(device.path).then((all) => all.slice(0, 1 << 20)),
          "x",
        );
        const metadata = structuredClone(header.metadata) as Metadata;
        alter(metadata);
        await overwrite(device.path, 0, formatHeader({ ...header, metadata: metadata as LuksMetadata }));
        if (field === "segments.0.encryption") assert.ok(await opens(device.path, current));
        const before = await checksum(device.path);
        const ran: string[] = [];
        const watched = cryptsetup(node, (tool, args) => void ran.push(`${tool} ${args[0]}`));
        const refused = new RegExp(`field=${field} `);
        const open = { readOnly: true, allowDiscards: false };
        const name = "rds-csi-pvc-1";
        await rejectsWith(watched.open(name, device, current, open, call()), "precondition", refused);
        const replacing = watched.replacePassphrase(name, device, change, cost, call());
        await rejectsWith(replacing, "precondition", refused);
        assert.deepEqual([ran, await checksum(device.path)], [[], before]);
      }
    });
  },
  lacking,
);

const attacks: Readonly<Record<string, (metadata: Metadata) => void>> = {
  "segments.0.encryption": (metadata) => metadata["segments"][0].encryption = "cipher_null-ecb",
  "keyslots.0.kdf.memory": (metadata) => metadata["keyslots"][0].kdf.memory = 2 * 1024 * 1024,
  "keyslots.0.kdf.time": (metadata) => metadata["keyslots"][0].kdf.time = 4_000_000_000,
};

nodeTest(
  "a target that shows another header after the first read has the first one used, and changes nothing by it",
  async (node) => {
    await withDevice(new TestVolume(node, "pvc-1", sizeBytes), async (device) => {
      await cryptsetup(node).format(device, current, cost, call());
      // From the first command on the device shows noise.
      const encryption = cryptsetup(
        node,
        async () => await overwrite(device.path, 0, new Uint8Array(1 << 20).fill(90)),
      );
      const change = { current: "neither of the two passphrases", next: current };
      await encryption.replacePassphrase("rds-csi-pvc-1", device, change, cost, call());
      const { signature } = await node.deps.filesystems.probe(device, call());
      assert.equal(signature.state, "none");
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
  const before = await checksum(volume.image);
  await rejectsWith(
    node.stage(volume, { capability: ext4 }),
    "precondition",
    /it holds crypto_LUKS, not ext4/,
  );
  assert.equal(await checksum(volume.image), before);
}, lacking);
