import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { stagingDifference } from "./intent.ts";
import { withMissed, withoutPublished, withPublished } from "./here.ts";
import type { Content, Here, Intent, StagingState } from "./state.ts";
import { formatStagingState, parseStagingState } from "./state_file.ts";

const intent: Intent = {
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
};
const content: Content = { header: "none", filesystem: "done", rootOpened: true, used: true };
const here: Here = {
  device: { deviceNumber: "7:3", uniqueId: "", sizeBytes: 1073741824n },
  mountedAs: "7:3",
  staged: true,
  published: [{ targetPath: "/pods/1/mount", readOnly: true }],
};
const stagingState: StagingState = { volumeId: "pvc-1", intent, content, here };

const states: Readonly<Record<string, Partial<StagingState>>> = {
  "a staged volume": {},
  "no device yet": { here: { staged: false, published: [] } },
  "a map": { intent: { ...intent, map: "multipath" } },
  "a map with times": {
    intent: { ...intent, map: "multipath", connection: { ctrlLossTmo: -1, reconnectDelay: 2 } },
  },
  "checksums": { intent: { ...intent, connection: { digests: ["header", "data"] } } },
};
Deno.test("parseStagingState() reads what formatStagingState() wrote", () => {
  for (const [what, over] of Object.entries(states)) {
    const state = { ...stagingState, ...over };
    assert.deepEqual(parseStagingState(formatStagingState(state), "pvc-1", "/f"), state, what);
  }
});

Deno.test("parseStagingState() keeps what it does not know, also through a change of the rest", () => {
  const later = { since: "1" };
  const parts = { intent: { ...intent, later }, content: { ...content, later }, here: { ...here, later } };
  const other = { ...stagingState, ...parts, later };
  const read = parseStagingState(formatStagingState(other), "pvc-1", "/f");
  assert.deepEqual({ ...read, here: withMissed(read.here, undefined) }, other);
});

Deno.test("parseStagingState() keeps the memory of missed reads, and drops a damaged one", () => {
  const memory = { lastMissedMs: 5, missedForMs: 6, askedMs: 4 };
  const missing = { ...stagingState, here: { ...here, missed: memory } };
  assert.deepEqual(parseStagingState(formatStagingState(missing), "pvc-1", "/f"), missing);
  const damaged = Object.keys(memory).flatMap((name) =>
    [undefined, null, "5", -1].map((at) => ({ ...memory, [name]: at }))
  );
  for (const missed of [null, "x", 5, [], ...damaged]) {
    const fields = JSON.parse(formatStagingState(stagingState));
    const text = JSON.stringify({ ...fields, here: { ...fields.here, missed } });
    assert.deepEqual(parseStagingState(text, "pvc-1", "/f"), stagingState);
  }
  const endless = formatStagingState(missing).replace(/("missedForMs": ?)6/, "$11e999");
  assert.deepEqual(parseStagingState(endless, "pvc-1", "/f"), stagingState);
});

Deno.test("withMissed() sets that memory and removes it", () => {
  const memory = { lastMissedMs: 5, missedForMs: 6, askedMs: 4 };
  assert.deepEqual(withMissed(here, memory), { ...here, missed: memory });
  assert.deepEqual(withMissed({ ...here, missed: memory }, undefined), here);
});

type Fields = Readonly<Record<string, unknown>>;
type Part = "intent" | "content" | "here";

/** The fields of a file with others in one of its parts. */
function changed(fields: Fields, part: Part, change: Fields): Fields {
  return { ...fields, [part]: { ...fields[part] as Fields, ...change } };
}

const wrong: readonly [what: string, part: Part, change: Fields][] = [
  ["an unknown kind of map", "intent", { map: true }],
  ["a connection with a wrong time", "intent", { connection: { ctrlLossTmo: "600" } }],
  ["an unknown checksum", "intent", { connection: { digests: ["all"] } }],
  ["an unknown kind", "intent", { kind: "btrfs" }],
  ["a size that is a number", "intent", { namespaceBytes: 5 }],
  ["a negative size", "intent", { namespaceBytes: "-5" }],
  ["a port out of range", "intent", { port: 65536 }],
  ["no staging path", "intent", { stagingPath: "" }],
  ["an unknown state of its file system", "content", { filesystem: "maybe" }],
  ["no state of its header", "content", { header: undefined }],
  ["no word of use", "content", { used: undefined }],
  ["a damaged device of what was begun", "content", { begunOn: { deviceNumber: "7:3", uniqueId: "" } }],
  ["a damaged device", "here", { device: { deviceNumber: "7", uniqueId: "", sizeBytes: "1" } }],
  ["a published target without path", "here", { published: [{ readOnly: true }] }],
  ["no word of whether it is staged", "here", { staged: undefined }],
];

const damage: readonly [string, (fields: Fields) => unknown][] = [
  ["another version", (fields) => ({ ...fields, version: 2 })],
  ["no version", ({ version: _version, ...rest }) => rest],
  ["another volume", (fields) => ({ ...fields, volumeId: "pvc-2" })],
  ["a list instead of an object", (fields) => [fields]],
  ["all fields in one part", (fields) => ({ ...fields, ...intent, ...content, ...here, intent: undefined })],
  ["a list instead of a part", (fields) => ({ ...fields, content: [] })],
  ...wrong.map((
    [what, part, change],
  ): typeof damage[number] => [what, (fields) => changed(fields, part, change)]),
];

for (const [name, change] of damage) {
  Deno.test(`parseStagingState() throws precondition for ${name}`, () => {
    const text = JSON.stringify(
      change(JSON.parse(formatStagingState(stagingState))),
      (_key, value) => typeof value === "bigint" ? String(value) : value,
    );
    assert.throws(() => parseStagingState(text, "pvc-1", "/f"), refusal("precondition"));
  });
}

Deno.test("parseStagingState() throws precondition for every truncation", () => {
  const text = formatStagingState(stagingState).trimEnd();
  for (let length = 0; length < text.length; length += 7) {
    assert.throws(() => parseStagingState(text.slice(0, length), "pvc-1", "/f"), refusal("precondition"));
  }
});

Deno.test("parseStagingState() names the field that is wrong", () => {
  const fields = changed(JSON.parse(formatStagingState(stagingState)), "content", { used: 1 });
  const text = JSON.stringify(fields);
  assert.throws(
    () => parseStagingState(text, "pvc-1", "/f"),
    refusal("precondition", /content\.used.*file=\/f/),
  );
});

Deno.test("stagingDifference() is undefined for the same intent whatever the order of flags", () => {
  const staged = { ...intent, mountFlags: ["noatime", "nodev"] };
  assert.equal(stagingDifference(staged, { ...staged, mountFlags: ["nodev", "noatime"] }), undefined);
});

for (
  const [field, value] of [
    ["kind", "block"],
    ["readOnly", true],
    ["stagingPath", "/elsewhere"],
    ["mountFlags", []],
    ["map", "crypt"],
    ["connection", { digests: ["data"] }],
  ] as const
) {
  Deno.test(`stagingDifference() reports another ${field}`, () => {
    assert.notEqual(stagingDifference(intent, { ...intent, [field]: value }), undefined);
  });
}

Deno.test("withPublished() replaces an entry of the same path and withoutPublished() removes it", () => {
  const published = withPublished(here, { targetPath: "/pods/1/mount", readOnly: false });
  assert.deepEqual(published.published, [{ targetPath: "/pods/1/mount", readOnly: false }]);
  assert.deepEqual(withoutPublished(published, "/pods/1/mount").published, []);
});
