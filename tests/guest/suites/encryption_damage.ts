import assert from "node:assert/strict";
import { codeOf } from "../../../src/csi/server/client.ts";
import type { Suite } from "../kit/suite.ts";
import { type GuestVolume, untilOk } from "../kit/volume.ts";
import { marker, nodeId, other, passphrase, sizes, startAll, Trial } from "./encryption/trial.ts";

/** What the owner of the only copy fears, on a real dm-crypt. */
export const encryptionDamage: Suite = {
  what: "encrypted volumes: damaged headers, killed tools, uses at the same time, and reading by hand",
  limitMinutes: 20,
  needsBinary: true,
  run: async (bench) => await new Damage(await startAll(bench)).run(),
};

class Damage extends Trial {
  async run(): Promise<void> {
    const test = (name: string, body: () => Promise<string>) => this.bench.test(name, body);
    await test("attach opens a volume for reading only, with the right passphrase, and changes no byte", () =>
      this.#byHand());
    await test("attach with a passphrase refuses a volume without a header, and leaves it as it is", () =>
      this.#byHandPlain());
    await test("a volume opens by either copy of its header; with both damaged it is refused and left alone", () =>
      this.#damaged());
    await test("a cryptsetup that is killed fails its stage, and the next one gets there", () =>
      this.#killedTool());
    await test("two stages at the same time write one header", () => this.#twice());
    await test("an unstage of a mapping that is open is refused, and goes through afterwards", () =>
      this.#busy());
    await test("nothing is left: no mapping, no connection, and no rule of the router's was broken", () =>
      this.end());
  }

  /** A volume with a pod's data that nobody has. */
  async #written(name: string): Promise<GuestVolume> {
    const volume = await this.create(name, "ext4", sizes.ext4);
    await this.attach(volume);
    await this.write(volume);
    await this.detach(volume);
    return volume;
  }

  async #digest(volume: GuestVolume): Promise<string> {
    return await this.guest.sh(`sync; sha256sum < ${await this.image(volume)}`);
  }

  async #header(volume: GuestVolume): Promise<string> {
    return await this.guest.sh(`blkid -p -o value -s UUID ${await this.image(volume)}`);
  }

  /** `rds-csi attach` of a published volume, with that passphrase if there is one. */
  #attachByHand(volume: GuestVolume, input?: string) {
    const { nvmeAddress, nvmePort } = volume.publishContext(nodeId);
    const flags = `--nvme-address ${nvmeAddress} --nvme-port ${nvmePort} --json`;
    const run = `/opt/tools/rds-csi attach ${volume.id} ${flags}`;
    return this.guest.run(
      input === undefined ? `${run} < /dev/null` : `printf %s "$input" | ${run} --passphrase-stdin`,
      { env: { NODE_ID: nodeId, ...input === undefined ? {} : { input } } },
    );
  }

  #detachByHand(volume: GuestVolume) {
    return this.guest.run(`/opt/tools/rds-csi detach ${volume.id}`, { env: { NODE_ID: nodeId } });
  }

  async #assertNothingHere(): Promise<void> {
    assert.equal(await this.guest.sh("dmsetup ls"), "No devices found");
    assert.equal(await this.guest.sh("cat /sys/class/nvme/*/subsysnqn 2>/dev/null || :"), "");
  }

  async #byHand(): Promise<string> {
    const volume = await this.#written("by-hand");
    const before = await this.#digest(volume);
    await untilOk(() => volume.publish(nodeId));
    const closed = await this.#attachByHand(volume);
    assert.equal(closed.status, 0, closed.stderr);
    assert.match(JSON.parse(closed.stdout).mount, /^cryptsetup open --readonly \/dev\/nvme/);
    assert.equal((await this.#detachByHand(volume)).status, 0);
    const wrong = await this.#attachByHand(volume, other);
    assert.notEqual(wrong.status, 0);
    assert.match(wrong.stderr, /opens none of its keys/);
    await this.#assertNothingHere();
    const { status, stdout, stderr } = await this.#attachByHand(volume, passphrase);
    assert.equal(status, 0, stderr);
    const report = JSON.parse(stdout);
    assert.deepEqual([report.signatures.TYPE, report.readOnly], ["ext4", true]);
    const env = { device: report.device };
    const dd = "dd if=/dev/zero of=$device count=1 conv=nocreat,fsync";
    assert.notEqual((await this.guest.run(dd, { env })).status, 0);
    await this.guest.sh(report.mount);
    assert.equal(await this.guest.sh(`head -c ${marker.length} /mnt/${volume.id}/file`), marker);
    assert.match((await this.#detachByHand(volume)).stderr, /is mounted at/);
    await this.guest.sh(`umount /mnt/${volume.id}`);
    const detached = await this.#detachByHand(volume);
    assert.equal(detached.status, 0, detached.stderr);
    await this.#assertNothingHere();
    assert.equal(await this.#digest(volume), before);
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    await this.delete(volume);
    return report.mount;
  }

  async #byHandPlain(): Promise<string> {
    const blank = await this.create("by-hand-blank", "ext4", sizes.ext4, {});
    const used = await this.create("by-hand-plain", "ext4", sizes.ext4, {});
    await this.attach(used);
    await this.write(used);
    await this.detach(used);
    const said: string[] = [];
    for (const volume of [blank, used]) {
      const before = await this.#digest(volume);
      await untilOk(() => volume.publish(nodeId));
      const { status, stderr } = await this.#attachByHand(volume, passphrase);
      assert.notEqual(status, 0);
      assert.match(stderr, /expected=an undamaged copy/);
      await this.#assertNothingHere();
      assert.equal(await this.#digest(volume), before);
      await untilOk(() => volume.unpublish(nodeId));
      await this.delete(volume);
      said.push(`exit ${status}`);
    }
    return `blank and used: ${said.join(", ")}`;
  }

  /** Writes noise over a part of the image, in bytes. */
  async #overwrite(volume: GuestVolume, offset: number, length: number): Promise<void> {
    const image = await this.image(volume);
    await this.guest.sh(
      `dd if=/dev/urandom of=${image} bs=${length} count=1 seek=${offset} oflag=seek_bytes iflag=fullblock conv=notrunc,fsync status=none`,
    );
  }

  async #damaged(): Promise<string> {
    const copyBytes = 16_384;
    for (const damaged of [0, copyBytes]) {
      const volume = await this.#written(`copy-${damaged}`);
      await this.#overwrite(volume, damaged, copyBytes);
      await this.attach(volume);
      await this.read(volume);
      await this.detach(volume);
      await this.delete(volume);
    }
    const said: string[] = [];
    for (
      const [what, offset] of [["whole", 0], ["metadata", 4096]] as const
    ) {
      const volume = await this.#written(`both-${what}`);
      const length = copyBytes - offset;
      for (const copy of [0, copyBytes]) await this.#overwrite(volume, copy + offset, length);
      const before = await this.#digest(volume);
      await untilOk(() => volume.publish(nodeId));
      for (let at = 0; at < 2; at++) {
        await assert.rejects(volume.stage(this.driver.clients.node, nodeId), (error) => {
          said.push(`${what}: ${codeOf(error)}`);
          return codeOf(error) === "FAILED_PRECONDITION";
        });
      }
      await untilOk(() => volume.unstage(this.driver.clients.node));
      await this.#assertNothingHere();
      assert.equal(await this.#digest(volume), before);
      await untilOk(() => volume.unpublish(nodeId));
      await this.delete(volume);
    }
    return said.join(", ");
  }

  async #killedTool(): Promise<string> {
    const said: string[] = [];
    for (const command of ["luksFormat", "open"]) {
      const volume = await this.create(`tool-${command.toLowerCase()}`, "ext4", sizes.ext4, {
        encrypted: "true",
      });
      await untilOk(() => volume.publish(nodeId));
      // The brackets keep it from finding itself.
      const killer = await this.guest.start(
        `until pkill -KILL -f '[c]ryptsetup ${command}'; do sleep 0.1; done`,
      );
      await assert.rejects(volume.stage(this.driver.clients.node, nodeId), (error) => {
        said.push(`${command}: ${codeOf(error)}`);
        return codeOf(error) === "UNAVAILABLE" && /exit=137/.test(String(error));
      });
      await killer.end;
      await this.#assertNothingHere();
      await this.useTwice(volume);
      await this.delete(volume);
    }
    return said.join(", ");
  }

  async #twice(): Promise<string> {
    const { node } = this.driver.clients;
    const volume = await this.create("twice", "block", sizes.block);
    await untilOk(() => volume.publish(nodeId));
    const stages = [1, 2, 3].map(() => volume.stage(node, nodeId).then(() => "OK", codeOf));
    const codes = await Promise.all(stages);
    assert.ok(codes.includes("OK") && codes.every((code) => code === "OK" || code === "ABORTED"), `${codes}`);
    const header = await this.#header(volume);
    await this.attach(volume);
    await this.write(volume);
    await this.read(volume);
    await this.detach(volume);
    assert.equal(await this.#header(volume), header);
    await this.delete(volume);
    return codes.join(", ");
  }

  async #busy(): Promise<string> {
    const { node } = this.driver.clients;
    const volume = await this.create("busy", "block", sizes.block);
    await this.attach(volume);
    await this.write(volume);
    const device = await this.guest.sh(
      `basename $(readlink -f /sys/dev/block/$(stat -c %Hr:%Lr ${volume.target}))`,
    );
    const holder = await this.guest.start(`exec sleep 600 < /dev/${device}`);
    await untilOk(() => volume.unpublishOn(node));
    let said = "";
    await assert.rejects(volume.unstage(node), (error) => {
      said = String(error);
      return codeOf(error) === "FAILED_PRECONDITION";
    });
    assert.match(await this.guest.sh("dmsetup ls"), new RegExp(`^rds-csi-${volume.id}\t`));
    await this.guest.sh(`kill -KILL -${await holder.pid}`);
    await holder.end;
    await this.detach(volume);
    await this.delete(volume);
    return said.slice(0, 160);
  }
}
