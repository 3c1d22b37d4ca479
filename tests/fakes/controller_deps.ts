import type { ControllerDeps, ControllerSettings } from "../../src/controller/deps.ts";
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { ImageCopies } from "../../src/controller/volumes/copies.ts";
import { HardwareMemory } from "../../src/controller/hardware/memory.ts";
import { VolumeMemory } from "../../src/controller/records/memory.ts";
import { PromisedRoom } from "../../src/controller/volumes/promised_room.ts";
import { takeOver } from "../../src/controller/take_over.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import { parseParameters, type VolumeParameters } from "../../src/volume/model/parameters.ts";
import type { ControllerEvent } from "../../src/volume/ports/controller_events.ts";
import type { ClusterView } from "../../src/volume/ports/cluster_view.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import type { CallContext, Clock } from "../../src/volume/ports/system.ts";
import { anyPair, unknownDetachedNodes } from "../../src/volume/ports/cluster_ports.ts";
import { noProjection } from "../../src/volume/ports/projection.ts";
import type { CreateRequest } from "../../src/volume/rules/provision.ts";
import type { PublishRequest } from "../../src/volume/rules/publish.ts";
import { FakeClock } from "./clock.ts";
import { SeededRandom } from "./random.ts";
import { testBase, testCluster, testPrefix } from "./records.ts";
import { FakeVolumeStore } from "./volume_store.ts";

/** One GiB, in bytes. */
export const gibibyte = 1n << 30n;

/** Default settings. */
export const testSettings: ControllerSettings = {
  backend: "default",
  basePaths: [testBase],
  nvmeAddress: "10.0.0.1",
  nvmePort: 4420,
  nqnPrefix: testPrefix,
  routerAddress: "10.0.0.1",
  routerPort: 22,
  cluster: testCluster,
  settleMs: 120_000,
  unexportGraceMs: 10_000,
  overcommit: 1,
  growth: "live",
  growsByToggle: false,
  subvolumeNames: "nested",
  harmsOthers: false,
  copyReturns: undefined,
  bootIdentity: undefined,
};

/** A StorageClass without parameters. */
export const testParameters: VolumeParameters = parseParameters({}, testSettings);

/** A controller on a router in memory; every node is known except `stranger`. */
export interface TestController {
  readonly deps: ControllerDeps;
  readonly store: FakeVolumeStore;
  readonly clock: FakeClock;
  /** Messages for people. */
  readonly notes: string[];
  /** Its events. */
  readonly events: ControllerEvent[];
}

/** Makes one. @param isOnly whether no other controller promises space at the same time */
export function testController(
  settings: Partial<ControllerSettings> = {},
  seed = 1,
  clusterView?: ClusterView,
  isOnly = false,
): TestController {
  const clock = new FakeClock();
  const store = new FakeVolumeStore(clock);
  const notes: string[] = [];
  const events: ControllerEvent[] = [];
  const deps = controllerDeps({ store, clock, settings, seed, clusterView, isOnly, notes, events });
  return { deps, store, clock, notes, events };
}

/**
 * A controller that has written a volume last, and what it has sent since that was asked last.
 *
 * @param alone whether no other controller changes volumes of the router
 */
export function rememberingController(
  disk: StoredVolume,
  settings: Partial<ControllerSettings> = {},
  alone = true,
) {
  const made = testController({ unexportGraceMs: 0, ...settings }, 1, undefined, true);
  const { store, clock } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(clock, alone) };
  store.put(disk);
  deps.memory.known.remember(disk);
  const methods = () => store.calls.splice(0).map(({ method }) => method);
  return { ...made, deps, methods };
}

/** The parts of a controller. */
export interface ControllerParts {
  readonly store: VolumeStore;
  readonly clock: Clock;
  readonly settings?: Partial<ControllerSettings>;
  readonly seed?: number;
  readonly clusterView?: ClusterView | undefined;
  /** Whether no other controller changes volumes at the same time. */
  readonly isOnly?: boolean;
  readonly notes?: string[];
  readonly events?: ControllerEvent[];
}

/** The dependencies of a process that has just started; several can share a router and a clock. */
export function controllerDeps(
  { store, clock, settings, seed = 1, clusterView, isOnly = false, notes = [], events = [] }: ControllerParts,
): ControllerDeps {
  const all = { ...testSettings, ...settings };
  return {
    store,
    nodes: {
      isKnown: (nodeId) => Promise.resolve(nodeId !== "stranger"),
      machineOf: () => Promise.resolve(undefined),
    },
    clock,
    random: new SeededRandom(seed),
    settings: all,
    events: {
      occurred: (event) => {
        if (event.kind !== "audited") return void events.push(event);
        const { counts } = event;
        if (counts === undefined) notes.push("counted: nothing any more");
        for (const [kind, count] of counts ?? []) notes.push(`counted: ${count} ${kind}`);
      },
    },
    notes: { warn: (message) => notes.push(message) },
    projection: noProjection,
    locks: new VolumeLocks(),
    pairs: anyPair,
    detachedNodes: unknownDetachedNodes,
    takeOver,
    memory: new VolumeMemory(clock, false),
    hardware: new HardwareMemory(clock),
    promised: new PromisedRoom(clock, all, () => isOnly),
    copies: new ImageCopies(clock),
    clusterView,
  };
}

/** Gives the router pools without subvolumes. */
export function withoutSubvolumes(store: FakeVolumeStore): void {
  store.pools = store.pools.map((pool) => ({ ...pool, filesystem: "xfs", subvolumeLabel: undefined }));
}

/** A call without a deadline. */
export function testContext(over: Partial<CallContext> = {}): CallContext {
  return { requestId: "test", signal: new AbortController().signal, ...over };
}

/** A CreateVolume of 1 GiB of ext4 for one node. */
export function aCreate(name: string, over: Partial<CreateRequest> = {}): CreateRequest {
  return {
    name,
    range: { requiredBytes: gibibyte, limitBytes: 0n },
    capabilities: { kind: { access: "mount", filesystem: "ext4" }, modes: ["single-node-writer"] },
    parameters: testParameters,
    rawParameters: {},
    ...over,
  };
}

/** The capability of a single writer of ext4. */
export const writer: Capability = { access: "mount", filesystem: "ext4", mode: "single-node-writer" };
/** The capability of a shared block device. */
export const sharedBlock: Capability = { access: "block", mode: "multi-node-multi-writer" };

/** A ControllerPublishVolume of ext4 for writing. */
export function aPublish(nodeId: string, over: Partial<PublishRequest> = {}): PublishRequest {
  return { nodeId, capability: writer, readOnly: false, ...over };
}

/** Advances time until a call is done, in steps of a second, at most `limitMs`. */
export async function inTime<T>(clock: FakeClock, call: Promise<T>, limitMs = 120_000): Promise<T> {
  let through = false;
  const mark = () => {
    through = true;
  };
  call.then(mark, mark);
  await clock.advance(0);
  for (let passedMs = 0; !through && passedMs < limitMs; passedMs += 1_000) await clock.advance(1_000);
  if (!through) throw new Error(`the call is not through after ${limitMs} ms of its clock`);
  return await call;
}
