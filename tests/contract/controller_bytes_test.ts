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
import { expandVolume } from "../../src/controller/volumes/expand.ts";
import { systemClock } from "../../src/host/clock.ts";
import { snapshotIdFor } from "../../src/volume/model/snapshots/snapshots.ts";
import type { SourceRef } from "../../src/volume/model/sources.ts";
import { parseParameters } from "../../src/volume/model/parameters.ts";
import { aCreate, aPublish, controllerDeps, gibibyte, testSettings } from "../fakes/controller_deps.ts";
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

/** The calls of a volume's life, with what each sends. @param remembers whether no other controller changes volumes */
async function life(remembers: boolean): Promise<Costs> {
  const costs: Record<string, readonly number[]> = {};
  await withRouter({ commandTimeoutMs: 5_000 }, async ({ router, another, call }) => {
    let watched: WatchedTransport | undefined;
    const store = another({ watch: (transport) => watched = new WatchedTransport(transport) });
    const made = controllerDeps({ store, clock: systemClock, settings, isOnly: remembers });
    const deps: ControllerDeps = { ...made, memory: new VolumeMemory(systemClock, remembers) };
    const create = (name: string, source?: SourceRef) =>
      createVolume(deps, aCreate(name, { parameters, ...source && { source } }), call());
    const snapshot = (name: string) => createSnapshot(deps, { name, source: id }, call());
    const expand = () => expandVolume(deps, id, { requiredBytes: 2n * gibibyte, limitBytes: 0n }, call());
    const publish = () => publishVolume(deps, id, aPublish(node), parameters, call());
    const unpublish = () => unpublishVolume(deps, id, node, call());
    const remove = () => deleteVolume(deps, id, call());
    const unsnap = (name: string) => deleteSnapshot(deps, snapshotIdFor(name, settings.cluster), call());
    const calls: readonly (readonly [what: string, work: () => Promise<unknown>])[] = [
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
    for (const [what, work] of calls) {
      const before = watched!.sent;
      await work();
      costs[what] = watched!.commands.slice(before).map((text) => text.length);
    }
    assert.deepEqual([router.model.disks.findBySlot(id), filesHolding(router, id)], [undefined, []]);
  });
  return costs;
}

/** Also where another controller may change volumes. */
const always: Costs = {
  "create, in a new folder": [743, 989],
  "publish again": [595],
  "unpublish again": [595],
  "withdraw": [595, 505],
  "delete a snapshot": [487, 932],
  "delete another snapshot": [487, 932],
  "delete again": [595],
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
  "delete": [999],
};

const reading: Costs = {
  ...always,
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

Deno.test("a controller that remembers its volumes sends so many commands of so many bytes", async () => {
  assert.deepEqual(await life(true), remembering);
});

Deno.test("a controller that reads first sends so many commands of so many bytes", async () => {
  assert.deepEqual(await life(false), reading);
});
