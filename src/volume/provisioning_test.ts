import assert from "node:assert/strict";
import { aCreate, gibibyte, testSettings } from "../../tests/fakes/controller_world.ts";
import { SeededRandom } from "../../tests/fakes/random.ts";
import { aDisk, aHolder, aRecord, testBase, testCluster } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { parametersDigest, parseParameters } from "./parameters.ts";
import type { CreateView, StoredVolume } from "./ports.ts";
import { type CreateRequest, decideCreate, planVolume } from "./provisioning.ts";
import { parseComment, type VolumeRecord } from "./record.ts";

const request = aCreate("pvc-0f8fad5b-d9cb-469f-a165-70867728950e");
const plan = planVolume(request, testCluster, new SeededRandom());
const folder = { path: testBase, sizeBytes: 0n, directory: true };

function view(over: Partial<CreateView> = {}): CreateView {
  return { volumes: [], pools: [], upMs: 1, foreign: undefined, files: [folder], ...over };
}

/** What an earlier try of the request has left on the router. */
function existing(record: Partial<VolumeRecord> = {}, disk: Partial<StoredVolume> = {}): CreateView {
  const parsed = parseComment(plan.comment);
  const made = parsed.state === "record" ? parsed.comment.record : assert.fail();
  const { id, imagePath, sizeBytes } = plan;
  return view({ volumes: [aDisk(aRecord({ ...made, ...record }), { id, imagePath, sizeBytes, ...disk })] });
}

function decide(seen: CreateView, over: Partial<CreateRequest> = {}) {
  const wanted = { ...request, ...over };
  return decideCreate(seen, planVolume(wanted, testCluster, new SeededRandom()), wanted, testCluster);
}

Deno.test("planVolume() describes a disk that nobody has published yet", () => {
  assert.equal(plan.id, "pvc-0f8fad5bd9cb469fa16570867728");
  assert.equal(plan.imagePath, `${testBase}/${plan.id}.${testCluster}.img`);
  assert.equal(plan.sizeBytes, gibibyte);
  const parsed = parseComment(plan.comment);
  const record = parsed.state === "record" ? parsed.comment.record : assert.fail();
  assert.equal(record.cluster, testCluster);
  assert.deepEqual([record.blankEpoch, record.epoch?.counter, record.holders], [1, 0, []]);
});

Deno.test("planVolume() is the same for every try of one request", () => {
  assert.deepEqual(planVolume({ ...request }, testCluster, new SeededRandom()), plan);
});

Deno.test("decideCreate() adds the volume, and its folder where that is missing", () => {
  assert.deepEqual(decide(view()), { action: "add", volume: plan });
  assert.deepEqual(decide(view({ files: [] })), { action: "add", volume: { ...plan, makeFolder: testBase } });
  const onPool = { parameters: parseParameters({}, { ...testSettings, basePaths: ["/pool"] }) };
  assert.equal("makeFolder" in (decide(view({ files: [] }), onPool) as { volume: object }).volume, false);
});

Deno.test("decideCreate() finds what an earlier try made, also when it is in use or has grown", () => {
  const holders = [aHolder("a")];
  const views = [
    existing(),
    existing({}, { sizeBytes: 5n * gibibyte }),
    existing({ epoch: { counter: 1, nonce: "00000000" }, holders }),
    existing({ growths: 2, blankEpoch: 0 }),
  ];
  for (const seen of views) {
    const decision = decide(seen);
    assert.equal(decision.action, "exists");
    assert.equal((decision as { volume: { stored: unknown } }).volume.stored, seen.volumes[0]);
  }
});

Deno.test("decideCreate() refuses one of the same name that differs", () => {
  const block = { kind: { access: "block" }, modes: ["single-node-writer"] } as const;
  const readers = { kind: request.capabilities.kind, modes: ["multi-node-reader-only"] } as const;
  const cases: [string, CreateView, Partial<CreateRequest>, RegExp][] = [
    [
      "smaller",
      existing(),
      { range: { requiredBytes: 2n * gibibyte, limitBytes: 0n } },
      /size is 1073741824/,
    ],
    [
      "larger than the limit",
      existing({}, { sizeBytes: 3n * gibibyte }),
      { range: { requiredBytes: 0n, limitBytes: 2n * gibibyte } },
      /size is/,
    ],
    ["another kind", existing(), { capabilities: block }, /made for ext4\/w, not block\/w/],
    ["other modes", existing(), { capabilities: readers }, /not ext4\/n/],
    ["other parameters", existing(), { rawParameters: { fsckMode: "off" } }, /other parameters/],
    ["another folder", existing({}, { imagePath: "/pool/x.img" }), {}, /other parameters/],
    ["another name in the same slot", existing({ name: "0".repeat(12) }), {}, /another name/],
    ["made from a source", existing({ source: "v:pvc-2" }), {}, /made from v:pvc-2/],
  ];
  for (const [name, seen, over, text] of cases) {
    assert.throws(() => decide(seen, over), refusal("exists-incompatible", text), name);
  }
});

Deno.test("decideCreate() refuses a slot or an image that is somebody else's", () => {
  const image = { path: plan.imagePath, sizeBytes: 7n, directory: false };
  const sharer = aDisk(aRecord(), { id: "disk1", imagePath: plan.imagePath });
  const cases: [string, CreateView, RegExp][] = [
    ["hardware", view({ foreign: { id: plan.id, kind: "raid" } }), /type=raid/],
    ["no record", existing({}, { comment: "" }), /no record/],
    ["another cluster", existing({ cluster: "ffffffff" }), /another cluster/],
    ["damaged", existing({}, { comment: plan.comment.slice(0, -2) }), /damaged/],
    ["an image without a disk", view({ files: [folder, image] }), /bytes=7; DeleteVolume removes it/],
    ["another disk on the image", view({ volumes: [sharer], files: [folder, image] }), /disk=disk1/],
  ];
  for (const [name, seen, text] of cases) {
    assert.throws(() => decide(seen), refusal("precondition", text), name);
  }
});

Deno.test("decideCreate() compares the parameters as they were given, not what they come to", () => {
  const seen = existing({ parameters: parametersDigest({ nvmePort: "4420" }) });
  assert.throws(() => decide(seen), refusal("exists-incompatible"));
  assert.equal(decide(seen, { rawParameters: { nvmePort: "4420" } }).action, "exists");
});
