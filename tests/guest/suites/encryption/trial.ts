import assert from "node:assert/strict";
import { formatProfile } from "../../../../src/router_profile/profile.ts";
import { getProfile } from "../../../../src/simulator/profile.ts";
import { type Driver, driverPorts, type Router, startDriver, startRouter } from "../../kit/driver.ts";
import type { Guest } from "../../kit/guest.ts";
import type { Bench } from "../../kit/suite.ts";
import { GuestVolume, untilOk, type VolumeUse } from "../../kit/volume.ts";

export const nodeId = "node-1";
const profilePath = "/etc/rds-csi/profile.json";
export const mib = 2 ** 20;
export const headerBytes = 16 * mib;
export const passphrase = "correct horse battery staple";
export const other = "another passphrase, as long as it";
/** What a pod writes, and what nobody may find on the router. */
export const marker = "the-plain-text-of-a-pod";
/** A guess of the passphrase costs little, because emulation makes it slow. */
export const cheap = { encrypted: "true", pbkdfMemory: "32", pbkdfTime: "100" };
/** As small as each goes. */
export const sizes: Readonly<Record<"ext4" | "xfs" | "block", number>> = {
  ext4: 48 * mib,
  xfs: 320 * mib,
  block: 16 * mib,
};

/** What a trial runs in. */
export interface TrialParts {
  readonly bench: Bench;
  readonly guest: Guest;
  readonly router: Router;
  readonly driver: Driver;
}

/** A driver in a guest, whose encrypted volumes are images of a simulated router in the same guest. */
export class Trial {
  readonly bench: Bench;
  readonly guest: Guest;
  readonly router: Router;
  driver: Driver;

  constructor({ bench, guest, router, driver }: TrialParts) {
    this.bench = bench;
    this.guest = guest;
    this.router = router;
    this.driver = driver;
  }

  create(
    name: string,
    use: VolumeUse,
    sizeBytes: number,
    parameters: Readonly<Record<string, string>> = cheap,
    snapshotId?: string,
  ): Promise<GuestVolume> {
    return GuestVolume.create(this.driver.clients.controller, name, use, sizeBytes, parameters, snapshotId)
      .then((volume) => {
        volume.secrets = { encryptionPassphrase: passphrase };
        return volume;
      });
  }

  async attach(volume: GuestVolume): Promise<void> {
    await untilOk(() => volume.publish(nodeId));
    await this.guest.sh(`mkdir -p ${volume.target.replace(/[^/]*$/, "")}`);
    await volume.attach(this.driver.clients.node, nodeId);
  }

  async detach(volume: GuestVolume): Promise<void> {
    await volume.detach(this.driver.clients.node);
    await untilOk(() => volume.unpublish(nodeId));
  }

  async delete(volume: GuestVolume): Promise<void> {
    await untilOk(() => this.driver.clients.controller.call("DeleteVolume", { volumeId: volume.id }));
  }

  write(volume: GuestVolume): Promise<string> {
    const lines = `seq -f '${marker} %05g' 1 32768`; // 240 blocks of 4096 bytes
    return this.guest.sh(
      volume.use === "block"
        ? `${lines} | dd of=${volume.target} bs=4k seek=256 oflag=direct iflag=fullblock status=none`
        : `${lines} > ${volume.target}/file && sync -f ${volume.target}`,
    );
  }

  async read(volume: GuestVolume): Promise<void> {
    const text = await this.guest.sh(
      volume.use === "block"
        ? `dd if=${volume.target} bs=4k skip=256 count=1 iflag=direct status=none | head -c ${marker.length}`
        : `head -c ${marker.length} ${volume.target}/file`,
    );
    assert.equal(text, marker);
  }

  /** Writes to a volume that no node has, reads it again after another stage, and finds no plain text on the router. */
  async useTwice(volume: GuestVolume): Promise<void> {
    await this.attach(volume);
    await this.write(volume);
    await this.detach(volume);
    await this.attach(volume);
    await this.read(volume);
    await this.detach(volume);
    assert.equal(await this.found(volume), 0);
  }

  async image(volume: GuestVolume): Promise<string> {
    return await this.guest.sh(`find ${this.router.backing} -path '*/${volume.id}.*' -name '*.img'`);
  }

  /** How many lines of the image hold what the pod has written. */
  async found(volume: GuestVolume): Promise<number> {
    const image = await this.image(volume);
    const script = `sync; LC_ALL=C grep -F -a -c ${marker} "$image" || :`;
    return Number(await this.guest.sh(script, { env: { image }, limitSeconds: 600 }));
  }

  /** Throws if anything is left. */
  async end(): Promise<string> {
    assert.equal(await this.guest.sh("dmsetup ls"), "No devices found");
    assert.equal(await this.guest.sh("cat /sys/class/nvme/*/subsysnqn 2>/dev/null || :"), "");
    assert.deepEqual(await this.router.violations(), []);
    await this.driver.stop();
    return "no violation";
  }
}

/** Boots a guest with a router whose volumes grow in use, and a driver. */
export async function startAll(bench: Bench): Promise<TrialParts> {
  const guest = await bench.guest({
    memoryMiB: 1536,
    ports: driverPorts,
    disks: [{ name: "pool", sizeBytes: 4 * 2 ** 30 }],
  });
  const flags = ["--behaviour", "grow=live"];
  const router = await startRouter(guest, { disk: guest.disk("pool"), filesystem: "btrfs", flags });
  const profile = { ...getProfile("ros-7.24"), answers: { grow: "live" } } as const;
  await guest.sh("mkdir -p /etc/rds-csi");
  await guest.write(profilePath, formatProfile(profile), 0o644);
  return { bench, guest, router, driver: await start(guest) };
}

/** Starts the driver, also after an earlier one was killed. */
export async function start(guest: Guest): Promise<Driver> {
  const flags = [
    "--router-profile",
    profilePath,
    "--known-node",
    "node-2",
    "--fence-interval",
    "1s",
    "--fence-settle-time",
    "5s",
  ];
  return await startDriver(guest, { nodeId, flags });
}
