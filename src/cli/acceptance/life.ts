import { codeOf } from "../../csi/server/client.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { checksumOf, writePattern } from "./pattern.ts";
import { type LifeKind, volumesOf } from "./names.ts";
import { assertHolds, NotHere, type StepGroup, stepOf } from "./step.ts";
import { grownBytes, smallBytes, TestVolume, type VolumeUser } from "./test_volume.ts";

/** What a life needs. */
export interface LifeOptions {
  readonly user: VolumeUser;
  /** How much is written and compared, in whole MiB. */
  readonly dataBytes: number;
  /** Why this machine cannot grow a mounted file system of the kind; undefined when it can. */
  readonly cannotGrow: string | undefined;
  /** Called with what could not be cleaned up. */
  problem(text: string): void;
}

type Part = "volume" | "restored" | "cloned" | "snapshot";

/** The order in which each kind's objects go: over all kinds each of them is once before and once behind its source. */
const deletionOrders: Readonly<Record<LifeKind, readonly Part[]>> = {
  ext4: ["snapshot", "volume", "restored", "cloned"],
  xfs: ["volume", "snapshot", "cloned", "restored"],
  block: ["cloned", "restored", "volume", "snapshot"],
};

const digestPromise = "OK is true: what was written and synced is what is read";

/** The steps that take a volume of one kind through its life. */
export function lifeGroup(kind: LifeKind, options: LifeOptions): StepGroup {
  const life = new Life(kind, options);
  const { cannotGrow } = options;
  const step = stepOf(kind);
  return {
    steps: [
      step("create, attach, write", "An answer is OK only when it is done", () => life.begin()),
      step("a second node", "Two nodes never write to one volume", () => life.refuseOther()),
      step("snapshot in use", "Snapshots are of one moment", () => life.snapshot()),
      step("detach, attach, compare", digestPromise, () => life.compareAgain()),
      step("growth", "Expanded is only what has grown", () => {
        if (cannotGrow !== undefined) throw new NotHere(cannotGrow);
        return life.grow();
      }),
      step("restore compared with its moment", "Snapshots are of one moment", () => life.restore()),
      step("clone", digestPromise, () => life.clone()),
      step("deletion", "A copy does not depend on its source", () => life.delete()),
    ],
    end: () => life.end(),
  };
}

class Life {
  readonly #options: LifeOptions;
  readonly #kind: LifeKind;
  readonly #volumes: Readonly<Record<Exclude<Part, "snapshot">, TestVolume>>;
  #snapshotId = "";
  /** Digests of what each volume has to hold. */
  readonly #digests = new Map<TestVolume, string>();
  #momentDigest = "";

  constructor(kind: LifeKind, options: LifeOptions) {
    this.#options = options;
    this.#kind = kind;
    const names = volumesOf(kind);
    const make = (name: string) => new TestVolume(options.user, name, kind);
    this.#volumes = {
      volume: make(names.volume),
      restored: make(names.restored),
      cloned: make(names.cloned),
    };
  }

  /** A larger copy is grown when it is mounted. */
  get #copyBytes(): bigint {
    return this.#options.cannotGrow === undefined ? grownBytes : smallBytes;
  }

  async begin(): Promise<string> {
    const { volume } = this.#volumes;
    await volume.create();
    await volume.attach();
    await this.#write(volume, 1);
    return `${this.#options.dataBytes >> 20} MiB`;
  }

  refuseOther(): Promise<void> {
    return this.#volumes.volume.assertRefusedToOther();
  }

  async snapshot(): Promise<void> {
    const { volume } = this.#volumes;
    const name = volumesOf(this.#kind).snapshot;
    try {
      const request = { name, sourceVolumeId: volume.id };
      const { snapshot } = await this.#options.user.clients.controller.call(
        "CreateSnapshot",
        request,
      );
      this.#snapshotId = snapshot?.snapshotId ?? "";
    } catch (error) {
      if (codeOf(error) === "FAILED_PRECONDITION") {
        throw new NotHere("this pool takes no snapshot of a volume in use");
      }
      throw error;
    }
    this.#momentDigest = this.#digests.get(volume)!;
    await this.#write(volume, 2);
  }

  async compareAgain(): Promise<void> {
    const { volume } = this.#volumes;
    await volume.detach();
    await this.#compare(volume);
  }

  async grow(): Promise<string> {
    const { volume } = this.#volumes;
    await volume.expand();
    await volume.attach();
    await volume.expandOnNode();
    const bytes = await volume.assertUsable(grownBytes);
    await this.#assertDigest(volume);
    await volume.detach();
    return `${bytes >> 20n} MiB`;
  }

  async restore(): Promise<void> {
    if (this.#snapshotId === "") throw new NotHere("there is no snapshot");
    const { restored } = this.#volumes;
    await restored.create({ snapshotId: this.#snapshotId }, this.#copyBytes);
    this.#digests.set(restored, this.#momentDigest);
    await this.#compare(restored);
  }

  async clone(): Promise<void> {
    const { volume, cloned } = this.#volumes;
    try {
      await cloned.create({ volumeId: volume.id }, this.#copyBytes);
    } catch (error) {
      if (codeOf(error) === "FAILED_PRECONDITION") {
        throw new NotHere("this router is not known to copy volumes whole");
      }
      throw error;
    }
    this.#digests.set(cloned, this.#digests.get(volume)!);
    await this.#compare(cloned);
  }

  /** Whatever goes, what is left holds its data. */
  async delete(): Promise<string> {
    const order = deletionOrders[this.#kind].filter((part) =>
      part === "snapshot" ? this.#snapshotId !== "" : this.#volumes[part].id !== ""
    );
    for (const [index, part] of order.entries()) {
      const last = index === order.length - 1;
      if (last && part !== "snapshot") await this.#compare(this.#volumes[part]);
      if (part === "snapshot") await this.#deleteSnapshot();
      else await this.#volumes[part].delete();
    }
    return order.join(", ");
  }

  async end(): Promise<void> {
    const { restored, cloned, volume } = this.#volumes;
    const failures: string[] = [];
    for (const one of [restored, cloned, volume]) failures.push(...await one.remove());
    await this.#deleteSnapshot().catch((error) => failures.push(messageOf(error)));
    for (const failure of failures) this.#options.problem(failure);
  }

  async #deleteSnapshot(): Promise<void> {
    if (this.#snapshotId === "") return;
    await this.#options.user.clients.controller.call(
      "DeleteSnapshot",
      { snapshotId: this.#snapshotId },
    );
    this.#snapshotId = "";
  }

  async #write(volume: TestVolume, seed: number): Promise<void> {
    this.#digests.set(volume, await writePattern(volume.dataPath, this.#options.dataBytes, seed));
  }

  /** Attaches a volume, compares, and detaches it. */
  async #compare(volume: TestVolume): Promise<void> {
    await volume.attach();
    await this.#assertDigest(volume);
    await volume.detach();
  }

  async #assertDigest(volume: TestVolume): Promise<void> {
    const read = await checksumOf(volume.dataPath, this.#options.dataBytes);
    assertHolds(read === this.#digests.get(volume), "the data differs from what was written");
  }
}
