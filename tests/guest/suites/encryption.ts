import assert from "node:assert/strict";
import { codeOf } from "../../../src/csi/server/client.ts";
import type { Suite } from "../kit/suite.ts";
import { untilOk } from "../kit/volume.ts";
import { cheap, headerBytes, nodeId, other, passphrase, sizes, startAll, Trial } from "./encryption/trial.ts";

/** What a volume of a class with `encrypted: "true"` is, over real NVMe/TCP and on a real dm-crypt. */
export const encryption: Suite = {
  what: "encrypted volumes: no plain text on the router, and a life like any other volume's",
  limitMinutes: 30,
  needsBinary: true,
  run: async (bench) => await new Life(await startAll(bench)).run(),
};

class Life extends Trial {
  async run(): Promise<void> {
    const test = (name: string, body: () => Promise<string>) => this.bench.test(name, body);
    await test("what a pod writes to a plain volume is on the router in plain text, so that it can be found", () =>
      this.#plain());
    for (const use of ["ext4", "xfs", "block"] as const) {
      await test(`${use}: a claim gets what it asked for, and the router sees cipher text`, () =>
        this.#life(use));
    }
    await test("a key costs 128 MiB of memory by default", () => this.#defaultCost());
    await test("a wrong passphrase is UNAUTHENTICATED, and changes nothing", () => this.#wrongPassphrase());
    for (const use of ["ext4", "block"] as const) {
      await test(`${use}: a volume grows in use, without a passphrase`, () => this.#grow(use));
    }
    await test("a restored snapshot opens with its source's passphrase, in an encrypted class only", () =>
      this.#restore());
    await test("the passphrase is replaced by the next one, and the earlier one opens nothing any more", () =>
      this.#rotate());
    await test("a volume that another node has got is cut off, unmounted and closed", () => this.#fence());
    await test("no passphrase is in a log, a state file, a command line or an environment", () =>
      this.#secrets());
    await test("nothing is left: no mapping, no connection, and no rule of the router's was broken", () =>
      this.end());
  }

  async #plain(): Promise<string> {
    const volume = await this.create("plain", "ext4", sizes.ext4, {});
    await this.attach(volume);
    await this.write(volume);
    const found = await this.found(volume);
    assert.ok(found > 1000, `found ${found} times`);
    await this.detach(volume);
    await this.delete(volume);
    return `found ${found} times`;
  }

  async #life(use: "ext4" | "xfs" | "block"): Promise<string> {
    const { controller, node } = this.driver.clients;
    const volume = await this.create(`life-${use}`, use, sizes[use]);
    const image = await this.image(volume);
    assert.equal(Number(await this.guest.sh(`stat -c %s ${image}`)), sizes[use] + headerBytes);
    const listed = await controller.call("ControllerGetVolume", { volumeId: volume.id });
    assert.equal(listed.volume!.capacityBytes, String(sizes[use]));
    await this.attach(volume);
    const table = await this.guest.sh(`dmsetup table rds-csi-${volume.id}`);
    assert.match(table, /^0 [0-9]+ crypt aes-xts-plain64 0+ 0 259:[0-9]+ 32768(?: 1 sector_size:4096)?$/);
    await this.write(volume);
    const { usage } = await node.call("NodeGetVolumeStats", {
      volumeId: volume.id,
      volumePath: volume.target,
    });
    const total = Number(usage.find(({ unit }) => unit === "BYTES")!.total);
    if (use === "block") assert.equal(total, sizes[use]);
    else assert.ok(total > sizes[use] / 2 && total <= sizes[use], `${total}`);
    const { volumeHealth } = await node.call("NodeGetVolumeHealth", { volumeId: volume.id });
    assert.deepEqual(volumeHealth!.healthStatuses, []);
    await this.detach(volume);
    assert.equal(await this.found(volume), 0);
    assert.equal(
      await this.guest.sh(`blkid -p -o value -s TYPE ${image}; blkid -p -o value -s LABEL ${image}`),
      "crypto_LUKS\nrds-csi",
    );
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return `${table.replace(/ 0{8,} /, " KEY ")}; ${total} bytes for the pod`;
  }

  async #defaultCost(): Promise<string> {
    const volume = await this.create("default-cost", "block", sizes.block, { encrypted: "true" });
    await untilOk(() => volume.publish(nodeId));
    const beganMs = performance.now();
    await untilOk(() => volume.stage(this.driver.clients.node, nodeId));
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
    const image = await this.image(volume);
    const keyslot = await this.guest.sh(
      `cryptsetup luksDump --dump-json-metadata ${image} | jq -r '.keyslots[].kdf | "\\(.type) \\(.memory)"'`,
    );
    assert.match(keyslot, /^argon2id [0-9]+$/);
    assert.ok(Number(keyslot.split(" ")[1]) <= 131_072, keyslot);
    await untilOk(() => volume.unstage(this.driver.clients.node));
    await untilOk(() => volume.unpublish(nodeId));
    await this.delete(volume);
    return `${keyslot} KiB; the first stage took ${seconds} s`;
  }

  async #wrongPassphrase(): Promise<string> {
    const { node } = this.driver.clients;
    const volume = await this.create("wrong", "ext4", sizes.ext4);
    await this.attach(volume);
    await this.write(volume);
    await this.detach(volume);
    const image = await this.image(volume);
    const digest = () => this.guest.sh(`sync; sha256sum < ${image}`);
    const before = await digest();
    await untilOk(() => volume.publish(nodeId));
    const refusals = [
      ["UNAUTHENTICATED", { encryptionPassphrase: other }],
      ["INVALID_ARGUMENT", {}],
      ["INVALID_ARGUMENT", { encryptionPassphrase: "too short" }],
    ] as const;
    const tookMs: number[] = [];
    for (const [code, secrets] of [refusals[0], ...refusals]) {
      volume.secrets = secrets as Record<string, string>;
      const beganMs = performance.now();
      await assert.rejects(
        untilOk(() => volume.stage(node, nodeId)),
        (error) => codeOf(error) === code && !String(error).includes(other),
      );
      tookMs.push(performance.now() - beganMs);
    }
    assert.equal(await digest(), before);
    assert.equal(await this.guest.sh("dmsetup ls"), "No devices found");
    volume.secrets = { encryptionPassphrase: passphrase };
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return `refused in ${tookMs.map((ms) => `${Math.round(ms)} ms`).join(", ")}; the image is as it was`;
  }

  async #grow(use: "ext4" | "block"): Promise<string> {
    const { controller, node } = this.driver.clients;
    const volume = await this.create(`grow-${use}`, use, sizes[use]);
    await this.attach(volume);
    await this.write(volume);
    const wanted = 2 * sizes[use];
    const capacityRange = { requiredBytes: String(wanted) };
    const grown = await untilOk(() =>
      controller.call("ControllerExpandVolume", { volumeId: volume.id, capacityRange })
    );
    assert.equal(grown.capacityBytes, String(wanted));
    const onNode = await untilOk(() =>
      node.call("NodeExpandVolume", { volumeId: volume.id, volumePath: volume.target, capacityRange })
    );
    assert.equal(onNode.capacityBytes, String(wanted));
    const bytes = Number(
      await this.guest.sh(
        use === "block"
          ? `blockdev --getsize64 ${volume.target}`
          : `echo $(($(stat -f -c '%b*%S' ${volume.target})))`,
      ),
    );
    assert.ok(bytes > 1.5 * sizes[use] && bytes <= wanted, `${bytes}`);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return `${sizes[use]} -> ${bytes} bytes for the pod`;
  }

  async #restore(): Promise<string> {
    const { controller } = this.driver.clients;
    const source = await this.create("source", "ext4", sizes.ext4);
    await this.attach(source);
    await this.write(source);
    const { snapshot } = await untilOk(() =>
      controller.call("CreateSnapshot", { sourceVolumeId: source.id, name: "snapshot-1" })
    );
    assert.equal(snapshot!.sizeBytes, String(sizes.ext4));
    const { snapshotId } = snapshot!;
    await assert.rejects(
      this.create("restored-plain", "ext4", sizes.ext4, {}, snapshotId),
      (error) => codeOf(error) === "INVALID_ARGUMENT" && /source is encrypted/.test(String(error)),
    );
    const restored = await untilOk(() => this.create("restored", "ext4", sizes.ext4, cheap, snapshotId));
    await this.attach(restored);
    await this.read(restored);
    const uuids = await Promise.all(
      [source, restored].map(async (volume) =>
        await this.guest.sh(`blkid -p -o value -s UUID ${await this.image(volume)}`)
      ),
    );
    assert.equal(uuids[0], uuids[1]);
    for (const volume of [restored, source]) await this.detach(volume);
    await untilOk(() => controller.call("DeleteSnapshot", { snapshotId }));
    for (const volume of [restored, source]) await this.delete(volume);
    return "both are open at once, with one UUID";
  }

  async #rotate(): Promise<string> {
    const { node } = this.driver.clients;
    const volume = await this.create("rotated", "ext4", sizes.ext4);
    await this.attach(volume);
    await this.write(volume);
    await this.detach(volume);
    const image = await this.image(volume);
    const keys = () =>
      this.guest.sh(`cryptsetup luksDump --dump-json-metadata ${image} | jq '.keyslots | length'`);
    volume.secrets = { encryptionPassphrase: passphrase, encryptionPassphraseNew: other };
    for (let at = 0; at < 2; at++) {
      await this.attach(volume);
      await this.read(volume);
      await this.detach(volume);
      assert.equal(await keys(), "1");
    }
    await untilOk(() => volume.publish(nodeId));
    volume.secrets = { encryptionPassphrase: passphrase };
    await assert.rejects(
      untilOk(() => volume.stage(node, nodeId)),
      (error) => codeOf(error) === "UNAUTHENTICATED",
    );
    volume.secrets = { encryptionPassphrase: other };
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return "twice with both, then with the new one alone";
  }

  /** The router gives the volume to another node while this one still has it mounted. */
  async #fence(): Promise<string> {
    const { node } = this.driver.clients;
    const volume = await this.create("fenced", "ext4", sizes.ext4);
    await this.attach(volume);
    await this.write(volume);
    await untilOk(() => volume.unpublish(nodeId));
    await untilOk(() => volume.publish("node-2"));
    const beganMs = performance.now();
    await untilOk(() => volume.detach(node));
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(1);
    assert.equal(await this.guest.sh("dmsetup ls"), "No devices found");
    assert.equal(
      await this.guest.sh(`cat /sys/class/nvme/*/subsysnqn 2>/dev/null | grep ${volume.id} || :`),
      "",
    );
    await untilOk(() => volume.unpublish("node-2"));
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return `gone after ${seconds} s`;
  }

  async #secrets(): Promise<string> {
    const log = this.driver.service.lines.join("\n");
    assert.ok(log.includes("NodeStageVolume"), "the log shows no stage");
    const isShown = (text: string) => text.includes(passphrase) || text.includes(other);
    assert.equal(isShown(log), false);
    await this.#watchedStage();
    const commands = Number(await this.guest.sh("grep -a -o 'cryptsetup luksFormat' /tmp/commands | wc -l"));
    assert.ok(commands > 0, "no cryptsetup was seen");
    const state = "/var/lib/kubelet /run/rds-csi /tmp/commands";
    const shown = await this.guest.sh(`grep -r -a -l -e '${passphrase}' -e '${other}' ${state} || :`);
    assert.equal(shown, "");
    return `${commands} looks at a running luksFormat, ${log.length} characters of log`;
  }

  /** Stages a new volume while the command lines and environments of all processes are written to a file. */
  async #watchedStage(): Promise<void> {
    const volume = await this.create("watched", "ext4", sizes.ext4, { encrypted: "true" });
    const watcher = await this.guest.start(
      "while :; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '; sleep 0.5; done > /tmp/commands",
    );
    await this.attach(volume);
    await this.guest.sh(`kill -KILL -${await watcher.pid}`);
    await watcher.end;
    await this.detach(volume);
    await this.delete(volume);
  }
}
