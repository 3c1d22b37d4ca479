// What each call sends to a router: how many commands, and of how many bytes each, with names of a usual length.
import assert from "node:assert/strict";
import { unpublishVolume, withdrawVolume } from "../../src/controller/attachments/unpublish.ts";
import { publishVolume } from "../../src/controller/attachments/publish.ts";
import type { ControllerDeps } from "../../src/controller/deps.ts";
import { VolumeMemory } from "../../src/controller/records/memory.ts";
import { createSnapshot } from "../../src/controller/snapshots/create.ts";
import { deleteSnapshot } from "../../src/controller/snapshots/delete.ts";
import { createVolume } from "../../src/controller/volumes/create.ts";
import { deleteVolume } from "../../src/controller/volumes/delete.ts";
import { allowFormat } from "../../src/controller/volumes/allow_format.ts";
import { restoreExport } from "../../src/controller/reconcile/restore.ts";
import type { OwnedVolume } from "../../src/volume/model/record.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { getOwned } from "../../src/volume/rules/ownership.ts";
import { expandVolume } from "../../src/controller/volumes/expand.ts";
import { systemClock } from "../../src/host/clock.ts";
import { snapshotIdFor } from "../../src/volume/model/snapshots/snapshots.ts";
import type { SourceRef } from "../../src/volume/model/sources.ts";
import { parseParameters } from "../../src/volume/model/parameters.ts";
import {
  aCreate,
  aPublish,
  controllerDeps,
  gibibyte,
  sharedBlock,
  testSettings,
} from "../fakes/controller_deps.ts";
import { folder, withRouter } from "./_routeros_bench.ts";
import { filesHolding } from "./_routeros_images.ts";
import { WatchedTransport } from "./_watched_transport.ts";

const name = "pvc-01234567-89ab-cdef-0123-456789abcdef";
const id = "pvc-0123456789abcdef0123456789ab";
const node = "worker-12";
const settings = { ...testSettings, basePaths: [folder], unexportGraceMs: 0 };
const parameters = parseParameters({}, settings);

/** The bytes of each command of each call. */
type Costs = Readonly<Record<string, readonly number[]>>;

type Calls = readonly (readonly [what: string, work: () => Promise<unknown>])[];

/** What each of some calls sends. @param remembers whether no other controller changes volumes */
async function costsOf(
  remembers: boolean,
  callsOf: (deps: ControllerDeps, call: () => CallContext) => Calls,
): Promise<Costs> {
  const costs: Record<string, readonly number[]> = {};
  await withRouter({ commandTimeoutMs: 5_000 }, async ({ router, another, call }) => {
    let watched: WatchedTransport | undefined;
    const store = another((transport) => watched = new WatchedTransport(transport));
    const made = controllerDeps({ store, clock: systemClock, settings, isOnly: remembers });
    const deps: ControllerDeps = { ...made, memory: new VolumeMemory(systemClock, remembers) };
    for (const [what, work] of callsOf(deps, call)) {
      const before = watched!.sent;
      await work();
      costs[what] = watched!.commands.slice(before).map((text) => text.length);
    }
    assert.deepEqual([router.model.disks.findBySlot(id), filesHolding(router, id)], [undefined, []]);
  });
  return costs;
}

/** The calls of a volume's life. */
function life(remembers: boolean): Promise<Costs> {
  return costsOf(remembers, (deps, call) => {
    const create = (name: string, source?: SourceRef) =>
      createVolume(deps, aCreate(name, { parameters, ...source && { source } }), call());
    const snapshot = (name: string) => createSnapshot(deps, { name, source: id }, call());
    const expand = () => expandVolume(deps, id, { requiredBytes: 2n * gibibyte, limitBytes: 0n }, call());
    const publish = () => publishVolume(deps, id, aPublish(node), parameters, call());
    const unpublish = () => unpublishVolume(deps, id, node, call());
    const remove = () => deleteVolume(deps, id, call());
    const unsnap = (name: string) => deleteSnapshot(deps, snapshotIdFor(name, settings.cluster), call());
    return [
      ["create, in a new folder", () => create("first")],
      ["create", () => create(name)],
      ["create again", () => create(name)],
      ["snapshot of a blank volume", () => snapshot("blank")],
      ["clone of a blank volume", () => create("blank clone", { kind: "volume", id })],
      ["publish", publish],
      ["publish again", publish],
      ["expand", expand],
      ["expand again", expand],
      ["unpublish", unpublish],
      ["unpublish again", unpublish],
      ["publish once more", publish],
      ["withdraw", () => withdrawVolume(deps, id, call())],
      ["snapshot", () => snapshot("used")],
      ["clone", () => create("clone", { kind: "volume", id })],
      ["delete a snapshot", () => unsnap("used")],
      ["delete another snapshot", () => unsnap("blank")],
      ["delete", remove],
      ["delete again", remove],
    ];
  });
}

/** Calls that are rarer, of a volume for several nodes, and of one for files. */
function rarer(): Promise<Costs> {
  return costsOf(true, (deps, call) => {
    const { store } = deps;
    const capabilities = { kind: { access: "block" }, modes: ["multi-node-multi-writer"] } as const;
    const publish = (nodeId: string) =>
      publishVolume(deps, id, aPublish(nodeId, { capability: sharedBlock }), parameters, call());
    const unpublish = (nodeId: string) => unpublishVolume(deps, id, nodeId, call());
    const owned = async () =>
      getOwned((await store.view(id, id, call())).volume!, settings.cluster, "restore");
    const turnOff = async () => {
      const { stored: { comment } } = await owned();
      await store.commit({ id, set: { export: false } }, [{ is: "comment", text: comment }], call());
    };
    const toggling = {
      ...deps,
      settings: { ...deps.settings, growth: "after-toggle", growsByToggle: true } as const,
    };
    const range = { requiredBytes: 2n * gibibyte, limitBytes: 0n };
    const layered = aPublish(node, { needsLayer: true });
    let seen: OwnedVolume;
    return [
      ["new folder", () => createVolume(deps, aCreate("first", { parameters }), call())],
      ["create", () => createVolume(deps, aCreate(name, { parameters, capabilities }), call())],
      ["publish", () => publish(node)],
      ["join", () => publish("worker-13")],
      ["leave", () => unpublish("worker-13")],
      ["by hand", async () => (await turnOff(), seen = await owned())],
      ["restore", () => restoreExport({ ...deps, context: call() }, seen, [])],
      ["unpublish", () => unpublish(node)],
      ["delete", () => deleteVolume(deps, id, call())],
      ["create for files", () => createVolume(deps, aCreate(name, { parameters }), call())],
      ["publish with a layer", () => publishVolume(deps, id, layered, parameters, call())],
      ["expand by a toggle", () => expandVolume(toggling, id, range, call())],
      ["unpublish from its layer", () => unpublish(node)],
      ["allow a format", () => allowFormat(deps, id, call())],
      ["snapshot", () => createSnapshot(deps, { name: "source", source: id }, call())],
      ["clone of a snapshot", () => {
        const source = { kind: "snapshot", id: snapshotIdFor("source", settings.cluster) } as const;
        return createVolume(deps, aCreate("restored", { parameters, source }), call());
      }],
      ["delete the snapshot", () => deleteSnapshot(deps, snapshotIdFor("source", settings.cluster), call())],
      ["delete for files", () => deleteVolume(deps, id, call())],
    ];
  });
}

/** Also where another controller may change volumes. */
const always: Costs = {
  "create, in a new folder": [743, 989],
  "publish again": [595],
  "unpublish again": [595],
  "withdraw": [595, 505],
  "delete a snapshot": [487, 932],
  "delete another snapshot": [487, 932],
  "delete again": [595, 437],
};

const remembering: Costs = {
  ...always,
  "create": [978],
  "create again": [628],
  "snapshot of a blank volume": [643, 974],
  "clone of a blank volume": [671, 687, 889],
  "publish": [940],
  "expand": [856],
  "expand again": [595],
  "unpublish": [595],
  "publish once more": [966],
  "snapshot": [643, 805],
  "clone": [671, 1009],
  // Three more than of a volume that never grew: its record counts that.
  "delete": [999],
};

const reading: Costs = {
  ...always,
  // Reads every disk back, by a list of keys as long as there is room for one.
  "create": [743, 980],
  "create again": [743],
  "snapshot of a blank volume": [710, 974, 613],
  "clone of a blank volume": [743, 687, 1003],
  "publish": [595, 599],
  "expand": [710, 506],
  "expand again": [710],
  "unpublish": [595, 496],
  "publish once more": [595, 625],
  "snapshot": [710, 805, 613],
  "clone": [743, 981],
  "delete": [595, 971],
};

const inRareCalls: Costs = {
  "new folder": [743, 989],
  "create": [979],
  "publish": [942],
  "join": [595, 641],
  "leave": [595, 518],
  "by hand": [573, 407, 573],
  "restore": [595, 527],
  "unpublish": [607],
  "delete": [996],
  "create for files": [978],
  "publish with a layer": [944],
  "expand by a toggle": [595, 763],
  "unpublish from its layer": [599],
  "allow a format": [595, 463],
  "snapshot": [643, 805],
  // Read back in a command of its own: in one they would be too long.
  "clone of a snapshot": [676, 944, 323],
  "delete the snapshot": [487, 932],
  "delete for files": [999],
};

Deno.test("a controller that remembers its volumes sends so many commands of so many bytes", async () => {
  assert.deepEqual(await life(true), remembering);
});

Deno.test("a controller that reads first sends so many commands of so many bytes", async () => {
  assert.deepEqual(await life(false), reading);
});

Deno.test("rarer calls send so many commands of so many bytes", async () => {
  assert.deepEqual(await rarer(), inRareCalls);
});
