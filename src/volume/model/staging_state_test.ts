import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../errors.ts";
import {
  formatStagingState,
  parseStagingState,
  stagingDifference,
  type StagingState,
  withMissed,
  withoutPublished,
  withPublished,
} from "./staging_state.ts";

const stagingState: StagingState = {
  volumeId: "pvc-1",
  nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
  epoch: "1-0a0b0c0d",
  mayFormat: true,
  addresses: ["10.0.0.1"],
  port: 4420,
  connection: {},
  kind: "ext4",
  readOnly: false,
  mountFlags: ["noatime"],
  stagingPath: "/var/lib/kubelet/staging",
  namespaceBytes: 1073741824n,
  device: { deviceNumber: "7:3", uniqueId: "", sizeBytes: 1073741824n },
  header: "none",
  filesystem: "done",
  used: true,
  mountedAs: "7:3",
  rootOpened: true,
  staged: true,
  published: [{ targetPath: "/pods/1/mount", readOnly: true }],
};

Deno.test("parseStagingState() reads what formatStagingState() wrote", () => {
  assert.deepEqual(parseStagingState(formatStagingState(stagingState), "pvc-1", "/f"), stagingState);
});

Deno.test("parseStagingState() keeps what it does not know, also through a change of the rest", () => {
  const other = { ...stagingState, later: { since: "1" } };
  const read = parseStagingState(formatStagingState(other), "pvc-1", "/f");
  assert.deepEqual(withMissed(read, undefined), other);
});

Deno.test("parseStagingState() reads a staging state without a device", () => {
  const early = { ...stagingState, device: undefined, mountedAs: undefined, staged: false };
  assert.deepEqual(parseStagingState(formatStagingState(early), "pvc-1", "/f"), early);
});

Deno.test("parseStagingState() keeps the memory of missed reads, and drops a damaged one", () => {
  const missing = { ...stagingState, missed: { lastMissedMs: 5, missedForMs: 6, askedMs: 4 } };
  assert.deepEqual(parseStagingState(formatStagingState(missing), "pvc-1", "/f"), missing);
  for (const missed of [null, "x", { lastMissedMs: "5" }, { lastMissedMs: 5, missedForMs: 6 }]) {
    const text = JSON.stringify({ ...JSON.parse(formatStagingState(stagingState)), missed });
    assert.deepEqual(parseStagingState(text, "pvc-1", "/f"), stagingState);
  }
});

Deno.test("withMissed() sets that memory and removes it", () => {
  const memory = { lastMissedMs: 5, missedForMs: 6, askedMs: 4 };
  assert.deepEqual(withMissed(stagingState, memory), { ...stagingState, missed: memory });
  assert.deepEqual(withMissed({ ...stagingState, missed: memory }, undefined), stagingState);
});

Deno.test("parseStagingState() keeps the connection parameters of a volume with a map", () => {
  for (const connection of [{}, { ctrlLossTmo: -1, reconnectDelay: 2 }]) {
    const layered: StagingState = { ...stagingState, connection, map: "multipath" };
    assert.deepEqual(parseStagingState(formatStagingState(layered), "pvc-1", "/f"), layered);
  }
});

const damage: readonly [string, (fields: Record<string, unknown>) => unknown][] = [
  ["an unknown kind of map", (fields) => ({ ...fields, map: true })],
  ["a connection with a wrong time", (fields) => ({ ...fields, connection: { ctrlLossTmo: "600" } })],
  ["another version", (fields) => ({ ...fields, version: 2 })],
  ["no version", ({ version: _version, ...rest }) => rest],
  ["another volume", (fields) => ({ ...fields, volumeId: "pvc-2" })],
  ["an unknown kind", (fields) => ({ ...fields, kind: "btrfs" })],
  ["an unknown state of its file system", (fields) => ({ ...fields, filesystem: "maybe" })],
  ["a size that is a number", (fields) => ({ ...fields, namespaceBytes: 5 })],
  ["a negative size", (fields) => ({ ...fields, namespaceBytes: "-5" })],
  ["a port out of range", (fields) => ({ ...fields, port: 65536 })],
  ["no staging path", (fields) => ({ ...fields, stagingPath: "" })],
  [
    "a damaged device",
    (fields) => ({ ...fields, device: { deviceNumber: "7", uniqueId: "", sizeBytes: "1" } }),
  ],
  ["a published target without path", (fields) => ({ ...fields, published: [{ readOnly: true }] })],
  ["a list instead of an object", (fields) => [fields]],
];

for (const [name, change] of damage) {
  Deno.test(`parseStagingState() throws precondition for ${name}`, () => {
    const text = JSON.stringify(change(JSON.parse(formatStagingState(stagingState))));
    assert.throws(
      () => parseStagingState(text, "pvc-1", "/f"),
      (error) => VolumeError.is(error, "precondition"),
    );
  });
}

Deno.test("parseStagingState() throws precondition for every truncation", () => {
  const text = formatStagingState(stagingState).trimEnd();
  for (let length = 0; length < text.length; length += 7) {
    assert.throws(
      () => parseStagingState(text.slice(0, length), "pvc-1", "/f"),
      (error) => VolumeError.is(error, "precondition"),
    );
  }
});

Deno.test("parseStagingState() reads the checksums of a connection, and refuses unknown names", () => {
  const digested: StagingState = { ...stagingState, connection: { digests: ["header", "data"] } };
  assert.deepEqual(parseStagingState(formatStagingState(digested), "pvc-1", "/f"), digested);
  const text = JSON.stringify({
    ...JSON.parse(formatStagingState(stagingState)),
    connection: { digests: ["all"] },
  });
  assert.throws(() => parseStagingState(text, "pvc-1", "/f"), refusal("precondition", /field connection/));
});

Deno.test("stagingDifference() is undefined for the same intent whatever the order of flags", () => {
  const staged = { ...stagingState, mountFlags: ["noatime", "nodev"] };
  assert.equal(stagingDifference(staged, { ...staged, mountFlags: ["nodev", "noatime"] }), undefined);
});

for (
  const [field, value] of [
    ["kind", "block"],
    ["readOnly", true],
    ["stagingPath", "/elsewhere"],
    ["mountFlags", []],
    ["connection", { digests: ["data"] }],
  ] as const
) {
  Deno.test(`stagingDifference() reports another ${field}`, () => {
    assert.notEqual(stagingDifference(stagingState, { ...stagingState, [field]: value }), undefined);
  });
}

Deno.test("withPublished() replaces an entry of the same path and withoutPublished() removes it", () => {
  const changed = withPublished(stagingState, { targetPath: "/pods/1/mount", readOnly: false });
  assert.deepEqual(changed.published, [{ targetPath: "/pods/1/mount", readOnly: false }]);
  assert.deepEqual(withoutPublished(changed, "/pods/1/mount").published, []);
});
