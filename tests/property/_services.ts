// Every service of the driver in this process, on a router and a node in memory, with what no request may do to them.
import { createVolume } from "../../src/controller/volumes/create.ts";
import { createDirectory } from "../../src/controller/directories/create.ts";
import type { DirectoryDeps } from "../../src/controller/directories/deps.ts";
import { ChangesInDoubt } from "../../src/controller/records/in_doubt.ts";
import type { ServiceMethods } from "../../src/csi/server/call.ts";
import { controllerMethods } from "../../src/csi/services/controller.ts";
import { directoryControllerMethods } from "../../src/csi/services/directory_controller.ts";
import { directoryNodeMethods } from "../../src/csi/services/directory_node.ts";
import { identityMethods } from "../../src/csi/services/identity.ts";
import { nodeMethods } from "../../src/csi/services/node.ts";
import { Routers } from "../../src/csi/services/routers/routers.ts";
import { DirectoryNode } from "../../src/node/directory/directory_node.ts";
import { NodeService } from "../../src/node/node_service.ts";
import { RouterDirectoryStore } from "../../src/routeros/directories/directory_store.ts";
import { Session } from "../../src/routeros/ssh/session.ts";
import { lintExec, lintStatement } from "../../src/simulator/assertions/lint.ts";
import { watchOwnership } from "../../src/simulator/assertions/ownership.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { parseDirectoryParameters } from "../../src/volume/model/directory/parameters.ts";
import { VolumeIdPrefix } from "../../src/volume/model/ids/handles.ts";
import { FakeClock } from "../fakes/clock.ts";
import { aCreate, inTime, testContext, testController } from "../fakes/controller_deps.ts";
import { contextOf, FakeNfsNode, targetOf } from "../fakes/nfs.ts";
import { FakeNode, nqn, publishContext, stagingPath, targetPath, volumeId } from "../fakes/node_deps.ts";
import type { RecordedRun } from "../fakes/processes.ts";
import { SeededRandom } from "../fakes/random.ts";
import { ended, FakeSshTransport } from "../fakes/ssh_transport.ts";
import { createRequest, mount, publishRequest } from "../support/controller_calls.ts";
import { mark, shared, sharePools } from "../support/directory_stack.ts";
import { anyone, makeRouter, typeTo } from "../support/simulated_router.ts";
import { type Change, outOfScope, type Scope, watchedDirectoryNode, watchedNode } from "./_scope.ts";

/** One service. */
export interface Served {
  readonly methods: ServiceMethods;
  readonly clock: FakeClock;
  /** Texts that name its objects. */
  readonly known: readonly string[];
  /** Valid requests, by the names of their methods. */
  readonly valid: Readonly<Record<string, readonly object[]>>;
  /** Called before each request; returns a function that lists what the request did and had no leave to. */
  readonly watch: (request: object) => () => readonly unknown[];
  /** How many changes there were; a service that is never made to change anything proves nothing. */
  readonly changes: () => number;
}

/** The proto's name of each service, and a function that starts one. */
export const services: Readonly<Record<string, readonly [proto: string, start: () => Promise<Served>]>> = {
  "Controller": ["Controller", startController],
  "Node": ["Node", startNode],
  "Controller of directories": ["Controller", startDirectoryController],
  "Node of directories": ["Node", startDirectoryNode],
  "Identity": ["Identity", startIdentity],
};

async function startController(): Promise<Served> {
  const { deps, store, clock } = testController();
  const { stored } = await createVolume(deps, aCreate("a"), testContext());
  const router = { name: "default", ids: VolumeIdPrefix.none, isDefault: true, deps, topology: {} };
  const publish = publishRequest(stored.id, "n1");
  return {
    methods: controllerMethods(new Routers([router])) as ServiceMethods,
    clock,
    known: [stored.id, "a", "n1", "ext4", "SINGLE_NODE_WRITER"],
    valid: {
      CreateVolume: [createRequest("a")],
      DeleteVolume: [{ volumeId: stored.id }],
      ControllerPublishVolume: [publish],
      ControllerUnpublishVolume: [{ volumeId: stored.id, nodeId: "n1" }],
      ControllerExpandVolume: [{ volumeId: stored.id, capacityRange: { requiredBytes: String(2n << 30n) } }],
      CreateSnapshot: [{ name: "s", sourceVolumeId: stored.id }],
    },
    watch: () => () => store.violations,
    changes: () => store.calls.filter(({ method }) => method === "change").length,
  };
}

/** A volume that is staged and published beside the one that the requests are about. */
const other = {
  volumeId: "pvc-2",
  nqn: nqn.replace(volumeId, "pvc-2"),
  stagingPath: "/kubelet/staging/pvc-2",
  targetPath: "/kubelet/pods/2/mount",
  devicePath: "/dev/loop4",
};

/** A node with another volume in use. */
export async function startNode(): Promise<Served> {
  const node = new FakeNode();
  node.devices.set(other.nqn, node.newDevice({ path: other.devicePath, deviceNumber: "7:4" }));
  node.paths.nodes.set("/kubelet/pods/2", { kind: "directory" });
  const changes: Change[] = [];
  const service = new NodeService(watchedNode(node.deps, changes));
  const stage = node.stageRequest({ ...other }, { nqn: other.nqn });
  await inTime(node.clock, service.stage(stage, testContext()));
  await inTime(node.clock, service.publish({ ...stage, ...other, readOnly: false }, testContext()));
  const texts = [volumeId, stagingPath, targetPath, other.stagingPath, other.targetPath, other.nqn];
  const layers = ["deviceLayer", "multipath", "none", "encrypted", "true", "layer"];
  return {
    methods: nodeMethods(service) as ServiceMethods,
    clock: node.clock,
    // The paths come more often, so that each is often sent in the place of another one.
    known: [
      ...texts,
      ...texts,
      ...texts,
      ...texts,
      ...layers,
      "ext4",
      "xfs",
      ...Object.entries(publishContext()).flat(),
    ],
    valid: validNodeRequests,
    watch: (request) => {
      changes.length = 0;
      const ran = node.processes.runs.length;
      const state = node.stagingState;
      const recorded = [state?.stagingPath, ...state?.published.map((target) => target.targetPath) ?? []];
      const scope = scopeOf(request, recorded.filter((path) => path !== undefined));
      return () => {
        const all = [...changes, ...toolChanges(node.processes.runs.slice(ran))];
        return outOfScope(all, { ...scope, devices: [node.device.path, node.device.deviceNumber] });
      };
    },
    changes: () => node.operations.length,
  };
}

/** The devices that dmsetup and cryptsetup were run on. */
function toolChanges(runs: readonly RecordedRun[]): Change[] {
  return runs.flatMap(({ tool, line }) =>
    [...line.matchAll(/\/dev\/loop\d+|\b7:\d+\b/g)].map(([of]) => ({ operation: tool, of }))
  );
}

/** The paths of a request, and those that the node has recorded for its volume. */
function scopeOf(request: object, recorded: readonly string[]): Scope {
  const fields = request as Readonly<Record<string, unknown>>;
  const asked = ["stagingTargetPath", "targetPath", "volumePath", "volumePublishPath"].map((name) =>
    fields[name]
  );
  const isOwn = fields["volumeId"] === volumeId;
  return {
    volumeId: String(fields["volumeId"]),
    paths: [
      ...asked.filter((path) => typeof path === "string" && path !== ""),
      ...isOwn ? recorded : [],
    ] as string[],
    statePath: "/state",
    devices: [],
    others: [other.stagingPath, other.targetPath, `/state/volumes/${other.volumeId}.json`],
  };
}

const encryption = {
  publishContext: publishContext({ encrypted: "true" }),
  volumeContext: { encrypted: "true" },
  secrets: { encryptionPassphrase: "a passphrase of a test" },
};
const staged = { volumeId, stagingTargetPath: stagingPath, volumeCapability: mount };
const layered = publishContext({ layer: "true" });

const validNodeRequests: Served["valid"] = {
  NodeStageVolume: [
    { ...staged, publishContext: publishContext() },
    { ...staged, publishContext: layered, volumeContext: { deviceLayer: "multipath" } },
    { ...staged, ...encryption },
  ],
  NodeUnstageVolume: [{ volumeId, stagingTargetPath: stagingPath }],
  NodePublishVolume: [{ ...staged, targetPath, publishContext: publishContext() }],
  NodeUnpublishVolume: [{ volumeId, targetPath }],
  NodeExpandVolume: [{ volumeId, volumePath: stagingPath }],
  NodeGetVolumeStats: [{ volumeId, volumePath: targetPath }],
  NodeGetVolumeHealth: [{ volumeId, stagingTargetPath: stagingPath }],
};

async function startDirectoryController(): Promise<Served> {
  const clock = new FakeClock();
  const random = new SeededRandom();
  const violations: string[] = [];
  const router = makeRouter({ clock, pools: sharePools });
  const report = (rule: string, sentence: string) => void violations.push(`${rule}: ${sentence}`);
  let changes = 0;
  const watch = watchOwnership(router, { basePaths: ["/share"], clusterHashes: [mark] }, report);
  const type = typeTo(router, {
    ...anyone,
    observe: (...change) => {
      changes++;
      watch(...change);
    },
    understood: (line) => line.flatMap(lintStatement).forEach(({ rule, sentence }) => report(rule, sentence)),
  });
  const transport = new FakeSshTransport(async (command) => {
    for (const { rule, sentence } of lintExec(command, 0)) report(rule, sentence);
    return ended(await type(command));
  });
  const session = new Session({ transport, clock, random });
  const store = new RouterDirectoryStore({ session, clock, random, probe: () => Promise.resolve() });
  const settings = {
    basePaths: ["/share/k8s"],
    addresses: [{ host: "nas", port: 2049 }],
    cluster: mark,
    settleMs: 0,
  };
  const noNotes = { warn: () => {} };
  const ends = {
    events: { occurred: () => {} },
    removals: { add: (path: string) => void router.files.remove(path.slice(1)), has: () => false },
  };
  const inDoubt = new ChangesInDoubt(clock);
  const deps: DirectoryDeps = { store, clock, random, settings, notes: noNotes, inDoubt, ...ends };
  const parameters = parseDirectoryParameters({}, settings);
  const wanted = { name: "a", range: { requiredBytes: 1n, limitBytes: 0n }, parameters };
  const { handle, path } = await inTime(clock, createDirectory(deps, wanted, testContext()));
  return {
    methods: directoryControllerMethods(deps) as ServiceMethods,
    clock,
    known: [handle, path, "a", "path", "/k8s", "/k8s/team", "addresses", "nas", "MULTI_NODE_MULTI_WRITER"],
    valid: {
      CreateVolume: [createRequest("a", { volumeCapabilities: [shared] })],
      DeleteVolume: [{ volumeId: handle }],
      ControllerExpandVolume: [{ volumeId: handle, capacityRange: { requiredBytes: "2" } }],
      ValidateVolumeCapabilities: [{ volumeId: handle, volumeCapabilities: [shared] }],
    },
    watch: () => () => violations,
    changes: () => changes,
  };
}

async function startDirectoryNode(): Promise<Served> {
  const node = new FakeNfsNode();
  node.addDirectory("/pool/volumes/a");
  node.addDirectory(`/pool/volumes/${other.volumeId}`);
  const changes: Change[] = [];
  const service = new DirectoryNode(watchedDirectoryNode(node.deps(), changes));
  const request = { volumeId: "a", targetPath: targetOf("a"), volumeCapability: shared };
  await node.publish(other.volumeId, { targetPath: other.targetPath });
  return {
    methods: directoryNodeMethods(service) as ServiceMethods,
    clock: node.clock,
    known: [
      "a",
      targetOf("a"),
      other.targetPath,
      ...Object.entries(contextOf("a")).flat(),
      "directoryMode",
      "0777",
    ],
    valid: {
      NodePublishVolume: [{ ...request, volumeContext: contextOf("a") }],
      NodeUnpublishVolume: [{ volumeId: "a", targetPath: targetOf("a") }],
      NodeGetVolumeStats: [{ volumeId: "a", volumePath: targetOf("a") }],
      NodeGetVolumeHealth: [{ volumeId: "a", volumePublishPath: targetOf("a") }],
    },
    watch: (request) => {
      changes.length = 0;
      // The service has no record of who has a path: the caller's word counts.
      return () => outOfScope(changes, { ...scopeOf(request, []), others: [] });
    },
    changes: () => node.operations.length,
  };
}

function startIdentity(): Promise<Served> {
  const random = new SeededRandom();
  const ready = () =>
    random.fraction() < 0.5 ? Promise.resolve() : Promise.reject(new VolumeError("unavailable", "not yet"));
  const options = { driverName: "rds.csi.example", vendorVersion: "1", controllerServed: true, ready };
  return Promise.resolve({
    methods: identityMethods(options) as ServiceMethods,
    clock: new FakeClock(),
    known: [""],
    valid: {},
    watch: () => () => [],
    changes: () => 0,
  });
}
