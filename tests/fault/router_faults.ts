// Faults of the router itself during a call: pools, people, reboots, other drivers.
import { control } from "../support/control_port.ts";
import { systemClock } from "../../src/host/clock.ts";
import { type Disk, plainDisk, type PoolState } from "../../src/simulator/model/disk.ts";
import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { codeOf } from "../../src/csi/server/client.ts";
import { beforeCommand, type Fault, type Healing, misplacedImage, type Strand, wordless } from "./faults.ts";
import type { Scene } from "./scene.ts";

const everything = 7_681_574_174_720n;

/** A router with many disks, and a pool that has room for one more. */
const crowded = {
  seedDisks: 10_000,
  pools: [{ name: "storage-pool", sizeBytes: 2n ** 50n, freeBytes: 2n ** 49n }],
};

/** The code for problems that a person has to repair. */
const refused = { codes: ["FAILED_PRECONDITION"] } as const;

type More = Pick<Fault, "codes" | "options" | "strands">;

/** An action right before a command. `act` returns how a person repairs it. */
function deps(name: string, act: (scene: Scene) => Healing, more: More = {}): Fault {
  return {
    name,
    strike: (scene, nth) => {
      let heal: Healing;
      const disarm = beforeCommand(scene.simulator, nth, () => heal = act(scene));
      return () => {
        // A call may end with fewer commands than it had when they were counted.
        disarm();
        return heal?.();
      };
    },
    ...more,
  };
}

/** Changes a disk. The repair undoes the change where it still holds. */
function editDisk({ simulator: { model } }: Scene, disk: Disk, change: Partial<Disk>): Healing {
  model.disks.replace({ ...disk, ...change });
  return () => {
    const now = model.disks.findBySlot(disk.slot);
    if (now === undefined) return;
    const still = Object.entries(change).filter(([key, value]) => now[key as keyof Disk] === value)
      .map(([key]) => [key, disk[key as keyof Disk]]);
    model.disks.replace({ ...now, ...Object.fromEntries(still) });
  };
}

function editPool(scene: Scene, change: Partial<PoolState>): Healing {
  const disk = scene.simulator.model.disks.findBySlot("storage-pool")!;
  return editDisk(scene, disk, { pool: { ...disk.pool!, ...change } });
}

function editVolumes(scene: Scene, change: (disk: Disk) => Partial<Disk>): Healing {
  const heals = disksOf(scene).map((disk) => editDisk(scene, disk, change(disk)));
  return () => heals.forEach((heal) => heal?.());
}

function turn({ simulator: { model } }: Scene, behaviours: Partial<Behaviours>): Healing {
  const before = model.behaviours;
  model.configure(undefined, behaviours);
  return () => model.configure(undefined, before);
}

/** Returns the existing disks of the volumes that Kubernetes knows. */
function disksOf({ simulator: { model }, volumes }: Scene): readonly Disk[] {
  return [...volumes.keys()].flatMap((id) => model.disks.findBySlot(id) ?? []);
}

/** A person removes the entries of all disks, and later puts back those of volumes that are still missing. */
function removeEntries(scene: Scene): Healing {
  const { disks } = scene.simulator.model;
  const removed = disksOf(scene);
  for (const { id } of removed) disks.remove(id);
  return () => {
    const missed = removed.filter(({ slot }) => scene.volumes.has(slot) && !disks.isTaken(slot));
    for (const disk of missed) disks.add(disk);
  };
}

/** A person removes the images, and later puts back those of volumes that still exist. */
function removeImages(scene: Scene): Healing {
  const { disks, files } = scene.simulator.model;
  const removed = disksOf(scene);
  for (const { filePath } of removed) files.remove(filePath.slice(1));
  return () => {
    const missed = removed.flatMap(({ slot }) => disks.findBySlot(slot) ?? []);
    for (const { filePath, sizeBytes } of missed) {
      if (files.find(filePath.slice(1)) === undefined) files.create(filePath.slice(1), sizeBytes);
    }
  };
}

/** A person toggles every export, and later sets it to the state that Kubernetes was told. */
function switchExports(scene: Scene): Healing {
  const { disks } = scene.simulator.model;
  for (const disk of disksOf(scene)) disks.replace({ ...disk, exported: !disk.exported });
  return () => {
    for (const disk of disksOf(scene)) {
      disks.replace({ ...disk, exported: scene.volumes.get(disk.slot)!.nodes.length > 0 });
    }
  };
}

/** Another owner takes the slot of the volume that is about to be made, where there is one. */
function takeSlot(scene: Scene): Healing {
  const { disks } = scene.simulator.model;
  const slot = scene.lastId;
  if (disks.isTaken(slot)) return undefined;
  disks.add({ ...plainDisk, slot, comment: "theirs" });
  return () => {
    const theirs = disks.findBySlot(slot);
    if (theirs?.comment === "theirs") disks.remove(theirs.id);
  };
}

/** Other clients take every session that the router allows. */
function takeSessions(scene: Scene): Healing {
  const { faults, model, violations } = scene.simulator;
  const before = model.behaviours;
  model.configure(undefined, { maxSessions: 0 });
  faults.arm({ match: "", nth: 1, times: 1, action: "drop-before", value: undefined });
  return () => {
    model.configure(undefined, before);
    // A session that the router refused to the driver does not count as a violation.
    if (violations.list().every(({ rule }) => rule === "session-limit")) violations.clear();
  };
}

/** The router reboots at a command: before it runs, or after it ran and before the first byte of its answer. */
function rebooting(
  name: string,
  action: "drop-before" | "drop-after",
  options: RebootOptions,
  more: More = {},
): Fault {
  return {
    name,
    options: { flags: ["--settle-time", "1s"] },
    alone: true,
    strike: async (scene, nth) => {
      // Waits until the objects from before the call are saved.
      await systemClock.sleep(60);
      scene.simulator.faults.arm({ match: "", nth, times: 1, action, value: undefined });
      const disarm = beforeCommand(
        scene.simulator,
        nth,
        () => void control(scene.simulator, "POST /reboot", { downMs: 30, ...options }),
      );
      return async () => {
        disarm();
        // Waits, because the driver trusts no router that has just booted, and the router shows its disks late.
        while (scene.simulator.model.system.uptimeMs < 1000) await systemClock.sleep(50);
        await systemClock.sleep((options.disksLateMs ?? 0) + 100);
      };
    },
    ...more,
  };
}

interface RebootOptions {
  readonly disksLateMs?: number;
  readonly loseLastMs?: number;
}

function addNote(scene: Scene): Healing {
  editVolumes(scene, ({ comment }) => ({ comment: `${comment} mine, Ann` }));
  return undefined;
}

function damageRecords(scene: Scene): Healing {
  return editVolumes(scene, ({ comment }) => ({ comment: comment.replace(" p=", " p~") }));
}

function linger(scene: Scene): Healing {
  const heal = turn(scene, { unexport: 200 });
  return async () => {
    await heal?.();
    await systemClock.sleep(250);
  };
}

function fullPool(name: string, behaviours: Partial<Behaviours>): Fault {
  const full = (scene: Scene) => editPool(scene, { otherBytes: everything });
  // The second one for a growth.
  const codes = ["RESOURCE_EXHAUSTED", "OUT_OF_RANGE"] as const;
  return deps(name, full, { options: { simulator: { behaviours } }, codes });
}

function withoutRose(state: "disabled" | "missing"): Fault {
  return deps(state, ({ simulator: { model } }) => {
    model.setRose(state);
    return () => model.setRose("installed");
  }, refused);
}

function refusingLogins(name: string, times: number): Fault {
  return lockedOut(name, ({ simulator: { faults } }) => {
    faults.arm({ match: "", nth: 1, times, action: "refuse-login", value: undefined });
    return Promise.resolve(() => faults.clear());
  });
}

async function showAnotherKey(scene: Scene): Promise<Healing> {
  await control(scene.simulator, "POST /host-key", {});
  return () => control(scene.simulator, "POST /host-key", { privateKey: routerHostKey.privatePem });
}

/** The connection drops at a command, and the router refuses the driver's next login. */
function lockedOut(name: string, lock: (scene: Scene) => Promise<Healing>): Fault {
  return {
    name,
    strike: async (scene, nth) => {
      const unlock = await lock(scene);
      scene.simulator.faults.arm({ match: "", nth, times: 1, action: "drop-before", value: undefined });
      return unlock;
    },
  };
}

/** The user's group loses a policy before the call, and gets it back later. */
function withoutPolicy(policy: "ssh" | "read" | "write"): Fault {
  return {
    name: `no policy ${policy}`,
    once: true,
    strike: async (scene) => {
      await control(scene.simulator, "PATCH /users/rds-csi", { [policy]: false });
      return () => control(scene.simulator, "PATCH /users/rds-csi", { [policy]: true });
    },
  };
}

/** Another driver of the same cluster makes the same call at the same time. */
function twice(name: string, delayMs: number): Fault {
  return {
    name,
    strike: async (scene, nth, attempt) => {
      const { clients } = await scene.another();
      scene.simulator.faults.arm({ match: "", nth, times: 1, action: "delay", value: delayMs });
      const other = attempt.call(clients, 5000).then(() => undefined, (error: unknown) => error);
      return async () => {
        const error = await other;
        if (
          error !== undefined &&
          !["ABORTED", "UNAVAILABLE", "FAILED_PRECONDITION"].includes(codeOf(error) ?? "")
        ) throw error;
      };
    },
  };
}

/** A router that has the fault from the start. */
function from(name: string, simulator: SimulatorOptions): Fault {
  return { name, options: { simulator }, strike: () => undefined, once: true };
}

const lost: Strand = {
  because:
    "a disk that a power cut took back leaves its image, and nothing tells it from one with data in it",
  says: misplacedImage,
};
const empty: Strand = {
  because: "a snapshot or a clone of a subvolume without its image is a subvolume without one, and stays",
  says: /the router did not do it|already have such subvolume/,
};

/** Faults of the router itself, in rows like those of the wire. */
export const routerFaults: readonly (readonly [row: string, faults: readonly Fault[]])[] = [
  ["pool unmounted", [deps("", (scene) => editPool(scene, { mounted: false }))]],
  ["pool degraded", [deps("", (scene) => editPool(scene, { state: "degraded" }))]],
  ["pool full", [fullPool("", {})]],
  ["pool full, said in random words", [fullPool("", { allocation: "full", output: "hostile" })]],
  ["package gone", [withoutRose("disabled"), withoutRose("missing")]],
  ["a policy taken away", [withoutPolicy("ssh")]],
  ["a policy for reading taken away", [withoutPolicy("read")]],
  ["a policy for writing taken away", [withoutPolicy("write")]],
  ["the same, said in random words", [{ ...withoutPolicy("write"), options: wordless }]],
  ["logins refused", [refusingLogins("once", 1), refusingLogins("for a while", 1000)]],
  ["another host key", [lockedOut("", showAnotherKey)]],
  ["a resize without effect", [deps("", (scene) => turn(scene, { grow: "never" }), refused)]],
  ["a person adds a note", [deps("", addNote)]],
  ["a person damages the record", [deps("", damageRecords, refused)]],
  ["a person switches exports over", [deps("", switchExports, refused)]],
  ["a person removes the disk", [deps("", removeEntries, refused)]],
  ["a person removes the image", [deps("", removeImages, { strands: empty })]],
  ["somebody takes the slot", [deps("", takeSlot, refused)]],
  ["others take every session", [deps("", takeSessions)]],
  ["another driver", [twice("a little faster", 30), twice("at the same time", 0)]],
  ["exports linger", [deps("", linger, { options: { flags: ["--unexport-grace", "250ms"] } })]],
  ["reboot", [rebooting("before", "drop-before", {}), rebooting("after", "drop-after", {})]],
  ["reboot, disks late", [
    rebooting("before", "drop-before", { disksLateMs: 300 }),
    rebooting("after", "drop-after", { disksLateMs: 300 }),
  ]],
  ["reboot, change lost", [rebooting("after", "drop-after", { loseLastMs: 50 }, { strands: lost })]],
  ["1,000 other disks", [from("", { seedDisks: 1000 })]],
  ["10,000 other disks", [from("", crowded)]],
];
