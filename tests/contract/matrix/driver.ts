// The whole driver on routers of every kind, through gRPC, with and without a --router-profile that describes the
// router.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { RouterBehaviours } from "../../../src/router_profile/answers.ts";
import { minCommand, minPut, neededLimits } from "../../../src/router_profile/limits.ts";
import { behavioursOf, getProfile } from "../../../src/simulator/profile.ts";
import { volumeIdFor } from "../../../src/volume/model/ids/ids.ts";
import {
  changesNothing,
  cloneOf,
  create,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../../support/controller_calls.ts";
import { probedAnswers, type Stack, startStack } from "../../support/stack.ts";
import type { Otherwise, RouterKind, Scenario } from "./scenario.ts";
import type { Setting } from "./settings.ts";

type Test = (stack: Stack) => Promise<void>;

const { nqnBytes, slotCharacters } = neededLimits;
const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };

function answersOf({ profile, behaviours }: Setting): Partial<RouterBehaviours> {
  return probedAnswers(behavioursOf(getProfile(profile), behaviours));
}

/** A driver on a router with these settings. */
function served(isReported: boolean, test: Test): Scenario["run"] {
  return async (setting) => {
    const { profile, behaviours } = setting;
    const reported = isReported ? { reported: answersOf(setting) } : {};
    await using stack = await startStack({
      simulator: { profile, behaviours },
      ...reported,
    });
    await test(stack);
  };
}

/** Checks that only the folder is left. */
async function assertNothingLeft(stack: Stack): Promise<void> {
  const { disks, files, subvolumes } = await state(stack);
  assert.deepEqual(disks.filter((disk) => disk.type === "file"), []);
  assert.deepEqual(files.filter((file) => !["directory", "disk"].includes(file.type)), []);
  assert.deepEqual(subvolumes.filter(({ fullname }) => fullname !== "metal-csi"), []);
}

function remove({ clients }: Stack, volumeId: string) {
  return clients.controller.call("DeleteVolume", { volumeId });
}

/** A volume is made, found, listed, grown as far as the router allows, and deleted. */
async function live(stack: Stack, grows: boolean): Promise<void> {
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-1");
  assert.equal(await create(stack, "pvc-1"), volumeId);
  const size = async () => (await controller.call("ControllerGetVolume", { volumeId })).volume!.capacityBytes;
  assert.equal(await size(), String(gibibyte));
  const { entries } = await controller.call("ListVolumes", {});
  assert.deepEqual(entries.map((entry) => entry.volume!.volumeId), [volumeId]);
  assert.deepEqual((await controller.call("ControllerListVolumeHealth", {})).entries, []);
  const expand = controller.call("ControllerExpandVolume", { volumeId, ...twice });
  if (grows) await expand;
  else await rejectsWith(status.FAILED_PRECONDITION, expand, /grow/);
  assert.equal(await size(), String(grows ? 2n * gibibyte : gibibyte));
  await remove(stack, volumeId);
  await remove(stack, volumeId);
  await assertNothingLeft(stack);
}

/** A volume moves from one node to another, and two nodes never have it at the same time. */
async function travel(stack: Stack): Promise<void> {
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-1");
  const nqns: string[] = [];
  for (const nodeId of ["node-1", "node-2"]) {
    const publish = () => controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
    const { publishContext } = await publish();
    assert.deepEqual((await publish()).publishContext, publishContext);
    nqns.push(publishContext["nqn"]!);
    assert.ok(stack.simulator.model.exports.list().map(String).includes(nqns.at(-1)!));
    const other = controller.call("ControllerPublishVolume", publishRequest(volumeId, "node-3"));
    await rejectsWith(status.FAILED_PRECONDITION, other, new RegExp(nodeId));
    await rejectsWith(status.FAILED_PRECONDITION, remove(stack, volumeId), new RegExp(nodeId));
    const { status: shown } = await controller.call("ControllerGetVolume", { volumeId });
    assert.deepEqual(shown?.publishedNodeIds, [nodeId]);
    await controller.call("ControllerUnpublishVolume", { volumeId, nodeId });
    assert.equal(stack.simulator.model.disks.findBySlot(volumeId)?.exported, false);
  }
  assert.equal(new Set(nqns).size, 2);
  await remove(stack, volumeId);
  await assertNothingLeft(stack);
}

/** A snapshot is made once, listed, and deleted. */
async function freeze(stack: Stack): Promise<void> {
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  const made = await snapshot(stack, "snap", source);
  assert.deepEqual([made.readyToUse, made.sizeBytes], [true, String(gibibyte)]);
  assert.deepEqual(await snapshot(stack, "snap", source), made);
  const { entries } = await controller.call("ListSnapshots", {});
  assert.deepEqual(entries.map((entry) => entry.snapshot), [made]);
  for (let round = 0; round < 2; round++) {
    await controller.call("DeleteSnapshot", { snapshotId: made.snapshotId });
  }
  await remove(stack, source);
  await assertNothingLeft(stack);
}

/** Volumes are made from a volume and from a snapshot; then all are deleted, the copies first. */
async function multiply(stack: Stack): Promise<void> {
  const source = await create(stack, "pvc-source");
  const { snapshotId } = await snapshot(stack, "snap", source);
  const clones = [
    await cloneOf(stack, "pvc-clone", { volumeId: source }),
    await cloneOf(stack, "pvc-restored", { snapshotId }),
  ];
  const { entries } = await stack.clients.controller.call("ListVolumes", {});
  assert.deepEqual(entries.map((entry) => entry.volume!.volumeId), [source, ...clones].toSorted());
  for (const id of clones) await remove(stack, id);
  await stack.clients.controller.call("DeleteSnapshot", { snapshotId });
  await remove(stack, source);
  await assertNothingLeft(stack);
}

/** Every call about a first volume is refused with this code and text, and nothing is left on the router. */
function refused(code: status, text: RegExp): Test {
  return async (stack) => {
    await rejectsWith(
      code,
      stack.clients.controller.call("CreateVolume", {
        name: "pvc-1",
        capacityRange: { requiredBytes: String(gibibyte) },
        volumeCapabilities: [{ mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_WRITER" } }],
      }, 2500),
      text,
    );
    const { disks, files } = await state(stack);
    assert.deepEqual(disks.filter((disk) => disk.type === "file"), []);
    assert.deepEqual(files.filter((file) => !["directory", "disk"].includes(file.type)), []);
  };
}

/** A volume is made; then the call is refused with this code and text, and changes nothing. */
function refusedLater(
  code: status,
  text: RegExp,
  ask: (stack: Stack, source: string) => Promise<unknown>,
): Test {
  return async (stack) => {
    const source = await create(stack, "pvc-source");
    await changesNothing(stack, () => rejectsWith(code, ask(stack, source), text));
    await remove(stack, source);
    await assertNothingLeft(stack);
  };
}

const bothWays = [true, false] as const;

/** Whether images lie in subvolumes, as this router allows it. */
function inSubvolumes({ btrfs, subvolumeNames }: RouterKind): boolean {
  return btrfs && subvolumeNames === "nested";
}

const harmful: Otherwise = {
  when: ({ sideEffects }) => sideEffects === "ends-sessions",
  because: "told of a router that ends the sessions of others, no volume is made",
  run: served(true, refused(status.FAILED_PRECONDITION, /ends the sessions of nodes to other volumes/)),
};

/** The routers on which no volume can be made at all. */
function useless(isReported: boolean): Otherwise[] {
  const unreported = (text: RegExp, code = status.UNAVAILABLE) => served(false, refused(code, text));
  const notStarted = (answers: RouterKind) => isReported && probedAnswers(answers).limits === "too-small";
  return [
    {
      when: notStarted,
      because: "told of limits that leave no room, the controller does not start, and says what it needs",
      run: (setting) => assert.rejects(served(true, () => Promise.resolve())(setting), /--router-profile/),
    },
    {
      when: ({ rose }) => !rose,
      because: "without rose-storage no volume is made",
      run: served(isReported, refused(status.UNAVAILABLE, /refused/)),
    },
    {
      when: ({ maxPut }) => maxPut < minPut,
      because: "where a router cannot even print one disk no call about it is answered OK",
      run: served(false, async (stack) => {
        const { controller } = stack.clients;
        const volumeId = await create(stack, "pvc-1");
        const asks = [
          controller.call("ControllerGetVolume", { volumeId }),
          // The controller publishes a volume that it remembers without reading first; its reads afterwards fail until
          // the deadline.
          controller.call("ControllerPublishVolume", publishRequest(volumeId), 5_000),
          controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }),
          remove(stack, volumeId),
        ];
        for (const refused of await Promise.allSettled(asks)) {
          assert.equal(refused.status, "rejected");
          const codes: readonly status[] = [status.UNAVAILABLE, status.ABORTED, status.DEADLINE_EXCEEDED];
          assert.ok(codes.includes(refused.reason.code), refused.reason.details);
        }
        const { disks } = await state(stack);
        assert.equal(disks.filter(({ type }) => type === "file").length, 1);
      }),
    },
    {
      when: ({ maxSlot }) => maxSlot < slotCharacters,
      because: "a slot that is too long for the router is refused, and nothing is left of it",
      run: unreported(/the router answered/),
    },
    {
      when: ({ maxCommand }) => maxCommand < minCommand,
      because: "a router that takes no command as long as they are is not read, and no volume is made",
      run: unreported(/lost/),
    },
    {
      when: ({ maxComment }) => maxComment < 90,
      because: "a record that the router cuts is taken back, and the limit is told",
      run: unreported(/keeps only/, status.FAILED_PRECONDITION),
    },
    ...isReported ? [harmful] : [{
      when: (kind: RouterKind) => kind.btrfs && kind.subvolumeNames === "flat",
      because: "where nobody says that subvolumes are at the top only the router's refusal is told",
      run: unreported(/the router answered/),
    }],
  ];
}

function lives(isReported: boolean): Otherwise[] {
  return [
    ...useless(isReported),
    {
      when: ({ grow }) => grow === "never",
      because: "a router that grows nothing: the volume stays as it is, and that is told",
      run: served(isReported, (stack) => live(stack, false)),
    },
  ];
}

function travels(isReported: boolean): Otherwise[] {
  const publish = ({ clients }: Stack, id: string) =>
    clients.controller.call("ControllerPublishVolume", publishRequest(id));
  return [
    ...useless(isReported),
    {
      when: ({ maxNqn }) => maxNqn < nqnBytes,
      because: "an NQN that the router cuts is never answered, and the volume can be taken away",
      run: served(isReported, async (stack) => {
        const volumeId = await create(stack, "pvc-1");
        await rejectsWith(status.UNAVAILABLE, publish(stack, volumeId));
        await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
        await remove(stack, volumeId);
        await assertNothingLeft(stack);
      }),
    },
  ];
}

/**
 * Where images are plain files, snapshots and clones are copies, which are made only where the router's answers about
 * copies can be trusted.
 */
function untrusted(
  isReported: boolean,
  ask: (stack: Stack, source: string) => Promise<unknown>,
): Otherwise[] {
  const refuse = (code: status, text: RegExp) => served(isReported, refusedLater(code, text, ask));
  const byCopy = (kind: RouterKind) => !inSubvolumes(kind);
  return [
    {
      when: (kind) => !isReported && byCopy(kind),
      because:
        "where nobody says what its answer to a copy means no copy is made, and the way to know is told",
      run: refuse(status.FAILED_PRECONDITION, /--router-profile/),
    },
    {
      when: (kind) => byCopy(kind) && kind.copyReturns === "at-once",
      because: "a router that answers before the copy is whole makes none",
      run: refuse(status.FAILED_PRECONDITION, /before the copy is complete/),
    },
    {
      when: (kind) => byCopy(kind) && !kind.fileCopy,
      because: "a router that cannot copy makes no copy, and its words are told",
      run: refuse(status.UNAVAILABLE, /not copied to the end/),
    },
  ];
}

function multiplies(isReported: boolean): Otherwise[] {
  const refusesClones = (code: status, text: RegExp) =>
    served(isReported, async (stack) => {
      const source = await create(stack, "pvc-source");
      await rejectsWith(code, cloneOf(stack, "pvc-clone", { volumeId: source }), text);
      await remove(stack, volumeIdFor("pvc-clone"));
      await remove(stack, source);
      await assertNothingLeft(stack);
    });
  return [
    ...useless(isReported),
    ...untrusted(isReported, (stack, volumeId) => cloneOf(stack, "pvc-clone", { volumeId })),
    {
      when: ({ adopt }) => adopt === "refused",
      because: "a router that takes over no file makes no clone; a delete removes what is left",
      run: refusesClones(status.UNAVAILABLE, /the router answered/),
    },
  ];
}

function scenarioPair(
  name: string,
  test: Test,
  otherwise: (isReported: boolean) => Otherwise[],
): Scenario[] {
  return bothWays.map((isReported) => ({
    name: `driver ${isReported ? "told" : "untold"}: ${name}`,
    run: served(isReported, test),
    otherwise: otherwise(isReported),
  }));
}

export const driverScenarios: readonly Scenario[] = [
  ...scenarioPair("life", (stack) => live(stack, true), lives),
  ...scenarioPair("publishing", travel, travels),
  ...scenarioPair(
    "snapshot",
    freeze,
    (
      isReported,
    ) => [...useless(isReported), ...untrusted(isReported, (stack, id) => snapshot(stack, "snap", id))],
  ),
  ...scenarioPair("clones", multiply, multiplies),
];
