import { aStagingState, type FlatState } from "../../../../tests/fakes/staging_state.ts";
import assert from "node:assert/strict";
import { judgeNodeHealth, type NodeReading } from "./node_health.ts";
import type { Connection, FoundDevice, MountEntry } from "../../ports/node_ports.ts";

const nqn = "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d";
const size = 1n << 30n;

const fields: FlatState = {
  volumeId: "pvc-1",
  nqn,
  epoch: "1-0a0b0c0d",
  mayFormat: true,
  addresses: ["10.0.0.1", "10.0.0.2"],
  port: 4420,
  connection: {},
  kind: "ext4",
  readOnly: false,
  mountFlags: [],
  stagingPath: "/staging",
  namespaceBytes: size,
  device: { deviceNumber: "259:3", uniqueId: "ab", sizeBytes: size },
  header: "none",
  filesystem: "done",
  used: true,
  mountedAs: "259:3",
  rootOpened: true,
  staged: true,
  published: [{ targetPath: "/pod/a", readOnly: false }, { targetPath: "/pod/b", readOnly: true }],
};
const stagingState = aStagingState(fields);
const path = (
  address: string,
  state: Connection["state"] = "live",
  stateName: string = state,
): Connection => ({
  nqn,
  name: "nvme1",
  state,
  stateName,
  address,
  port: 4420,
  hostNqn: "",
  hostId: "",
});
const device: FoundDevice = {
  path: "/dev/nvme0n1",
  deviceNumber: "259:3",
  sizeBytes: size,
  nqn,
  nsid: 1,
  uniqueId: "ab",
};
const mount: MountEntry = {
  mountId: 1,
  parentId: 0,
  deviceNumber: "259:3",
  root: "/",
  mountPoint: "/staging",
  mountOptions: ["rw", "relatime"],
  filesystem: "ext4",
  source: "/dev/nvme0n1",
  superOptions: ["rw"],
};
const shows = (deviceNumber: string | undefined) => ({ state: "device", deviceNumber } as const);
const target = (targetPath: string, shown: NodeReading["targets"][number]["shown"] = shows("259:3")) => ({
  targetPath,
  shown,
});

const healthy: NodeReading = {
  stagingState,
  connections: [path("10.0.0.1"), path("10.0.0.2")],
  device,
  mismatch: undefined,
  mount,
  silence: undefined,
  layers: [],
  targets: [target("/pod/a"), target("/pod/b")],
};
const one = aStagingState({ ...fields, addresses: ["10.0.0.1"] });
const readOnly = aStagingState({ ...fields, readOnly: true });
const raw = aStagingState({ ...fields, kind: "block" });

const cases: readonly [string, Partial<NodeReading>, readonly string[]][] = [
  ["as it should be", {}, []],
  ["one address, one path", { stagingState: one, connections: [path("10.0.0.1")] }, []],
  ["a grown device", { device: { ...device, sizeBytes: size * 2n } }, []],
  ["read-only as wanted", { stagingState: readOnly, mount: { ...mount, superOptions: ["ro"] } }, []],
  ["a block volume", { stagingState: raw, mount: undefined }, []],
  ["a connector without addresses", { connections: [path("")] }, []],
  ["not connected", { connections: [], device: undefined }, ["INACCESSIBLE NotConnected"]],
  ["one path gone", { connections: [path("10.0.0.1")] }, ["DEGRADED PathLost"]],
  ["one path reconnects", { connections: [path("10.0.0.1"), path("10.0.0.2", "connecting")] }, [
    "DEGRADED PathLost",
  ]],
  ["two live paths to one address", { connections: [path("10.0.0.1"), path("10.0.0.1")] }, [
    "DEGRADED PathLost",
  ]],
  ["all paths reconnect", {
    connections: [path("10.0.0.1", "connecting"), path("10.0.0.2", "connecting")],
  }, ["INACCESSIBLE ConnectionLost"]],
  ["the only path is deleted", { connections: [path("10.0.0.1", "deleting")] }, [
    "INACCESSIBLE ConnectionLost",
  ]],
  ["a path in a state of another name", { connections: [path("10.0.0.1", "other", "dead")] }, [
    "INACCESSIBLE ConnectionLost",
  ]],
  ["a device that is waited for", { device: undefined, waits: true }, ["INACCESSIBLE DeviceWaiting"]],
  ["a device that is not the one waited for", { device: undefined, waits: true, returned: device }, [
    "INACCESSIBLE DeviceWaiting",
  ]],
  ["a map that does not wait", { waits: true }, []],
  ["live without a device", { device: undefined }, ["INACCESSIBLE DeviceMissing"]],
  ["a device without size", { device: { ...device, sizeBytes: 0n } }, ["INACCESSIBLE DeviceEmpty"]],
  ["LVM of the node on it", { layers: ["/dev/dm-0 (vg-root, LVM)"] }, ["DEGRADED UsedByNode"]],
  ["a shrunken device", { device: { ...device, sizeBytes: size - 1n }, mismatch: "size" }, [
    "DATA_LOSS DeviceTooSmall",
  ]],
  ["another device", { mismatch: "expected id=ab found id=cd" }, ["INACCESSIBLE DeviceMismatch"]],
  ["another device number", { device: { ...device, deviceNumber: "259:9" } }, [
    "INACCESSIBLE DeviceMismatch",
  ]],
  ["not mounted", { mount: undefined }, ["INACCESSIBLE NotMounted"]],
  ["another device mounted", { mount: { ...mount, deviceNumber: "259:9" } }, ["INACCESSIBLE ForeignMount"]],
  ["another file system mounted", { mount: { ...mount, filesystem: "xfs" } }, ["INACCESSIBLE ForeignMount"]],
  ["turned read-only", { mount: { ...mount, superOptions: ["ro"] } }, ["DEGRADED FilesystemReadOnly"]],
  ["an emergency", { mount: { ...mount, superOptions: ["rw", "emergency_ro"] } }, [
    "DEGRADED FilesystemReadOnly",
  ]],
  ["the mount turned read-only", { mount: { ...mount, mountOptions: ["ro"] } }, [
    "DEGRADED FilesystemReadOnly",
  ]],
  ["shut down", { mount: { ...mount, superOptions: ["rw", "shutdown"] } }, [
    "INACCESSIBLE FilesystemShutDown",
  ]],
  ["shut down and read-only", {
    stagingState: readOnly,
    mount: { ...mount, superOptions: ["ro", "shutdown"] },
  }, [
    "INACCESSIBLE FilesystemShutDown",
  ]],
  ["writable against intent", { stagingState: readOnly }, ["DEGRADED FilesystemWritable"]],
  ["ext4 with errors that goes on", { errors: 2 }, ["DEGRADED FilesystemErrors"]],
  ["ext4 without errors, or of which nothing is known", { errors: 0 }, []],
  ["errors that have turned it read-only", { errors: 2, mount: { ...mount, superOptions: ["ro"] } }, [
    "DEGRADED FilesystemReadOnly",
  ]],
  ["a device that refuses reads below a file system that goes on", { refusesReads: true }, [
    "INACCESSIBLE DeviceUnreadable",
  ]],
  ["a device that did not answer a read", { refusesReads: undefined }, []],
  ["a device that refuses reads below one that was shut down", {
    refusesReads: true,
    mount: { ...mount, superOptions: ["rw", "shutdown"] },
  }, ["INACCESSIBLE FilesystemShutDown"]],
  ["a silent file system", { silence: "exit=1" }, ["INACCESSIBLE FilesystemSilent"]],
  ["a target without a mount", { targets: [target("/pod/a", { state: "nothing" })] }, [
    "INACCESSIBLE TargetMissing",
  ]],
  ["two targets without mounts", {
    targets: [target("/pod/a", { state: "nothing" }), target("/pod/b", { state: "nothing" })],
  }, ["INACCESSIBLE TargetMissing"]],
  ["a target with another device", { targets: [target("/pod/a", shows("259:9"))] }, [
    "INACCESSIBLE TargetMismatch",
  ]],
  ["a target that is no device", { stagingState: raw, targets: [target("/pod/a", shows(undefined))] }, [
    "INACCESSIBLE TargetMismatch",
  ]],
  ["a silent target", { targets: [target("/pod/a", { state: "silent", reason: "2 s" })] }, [
    "INACCESSIBLE TargetSilent",
  ]],
  ["staging unfinished", {
    stagingState: aStagingState({ ...fields, staged: false }),
    connections: [],
    device: undefined,
  }, [
    "INACCESSIBLE NotStaged",
  ]],
  [
    "staging unfinished, another device",
    { stagingState: aStagingState({ ...fields, staged: false }), mismatch: "id" },
    [
      "INACCESSIBLE NotStaged",
      "INACCESSIBLE DeviceMismatch",
    ],
  ],
  [
    "several at once",
    {
      connections: [path("10.0.0.1")],
      mount: { ...mount, superOptions: ["ro"] },
      targets: [target("/pod/a", { state: "nothing" }), target("/pod/b", shows("259:9"))],
    },
    [
      "DEGRADED PathLost",
      "DEGRADED FilesystemReadOnly",
      "INACCESSIBLE TargetMissing",
      "INACCESSIBLE TargetMismatch",
    ],
  ],
];

for (const [name, change, expected] of cases) {
  Deno.test(`judgeNodeHealth() judges ${name}`, () => {
    const problems = judgeNodeHealth({ ...healthy, ...change });
    assert.deepEqual(problems.map(({ status, reason }) => `${status} ${reason}`), expected);
    for (const { message } of problems) assert.match(message, /^[a-z].{10}/);
  });
}

Deno.test("judgeNodeHealth() names each target of a kind of problem in one message", () => {
  const targets = [target("/pod/a", { state: "nothing" }), target("/pod/b", { state: "nothing" })];
  const [problem] = judgeNodeHealth({ ...healthy, targets });
  assert.match(problem?.message ?? "", /path=\/pod\/a, \/pod\/b$/);
});
