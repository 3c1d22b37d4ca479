import assert from "node:assert/strict";
import { aDisk, aRecord, testBase, testCluster, testPrefix } from "../../../tests/fakes/records.ts";
import type { Pool, StoredFile } from "../model/inventory.ts";
import {
  formatPlate,
  type NamePlate,
  type ObjectName,
  parsePlate,
  parsePlates,
  platesFolder,
} from "../model/name_plates.ts";
import { judgePlates, maxPlateChanges, maxPlates, planPlates, plateLeftovers } from "./name_plates.ts";

const plates = `${testBase}/${platesFolder(testCluster)}`;
const folder = (path: string): StoredFile => ({ path, directory: true, sizeBytes: 0n });
const nameOf = (id: string, name = `claim-of-${id}`): ObjectName => ({
  id,
  namespace: "default",
  name,
  className: "rds-ext4",
});
const pathOf = (name: ObjectName) => `${plates}/${formatPlate(name)!}`;
const shown = (...names: ObjectName[]) => [folder(plates), ...names.map((name) => folder(pathOf(name)))];
const disks = (...ids: string[]) =>
  ids.map((id) => aDisk(aRecord({}), { id, imagePath: `${testBase}/${id}.img` }));

const pool = (mountPoint: string): Pool => ({
  ...{ mountPoint, filesystem: "btrfs", state: "clean", subvolumeLabel: undefined },
  ...{ sizeBytes: 1n << 40n, freeBytes: 1n << 40n },
});
const pools = [pool("pool"), pool("fast")];

function plan(
  { names = [], files = [], ids = ["a-1", "b-1"], basePaths = [testBase] }: {
    names?: readonly ObjectName[];
    files?: readonly StoredFile[];
    ids?: readonly string[];
    basePaths?: readonly string[];
  },
) {
  return planPlates({ cluster: testCluster, basePaths, pools, disks: disks(...ids), files, names });
}

Deno.test("planPlates() makes none for another cluster's disk, and puts each into the base folder of its image", () => {
  const names = [nameOf("a-1"), nameOf("b-1"), nameOf("c-1")];
  const fast = aDisk(aRecord({}), { id: "b-1", imagePath: "/fast/csi/b-1.img" });
  const imported = aDisk(aRecord({}), { id: "c-1", imagePath: "/elsewhere/c.img" });
  const foreign = aDisk(aRecord({}), { id: "a-1", comment: "a person's disk" });
  const { add } = planPlates({
    cluster: testCluster,
    basePaths: [testBase, "/fast/csi"],
    pools,
    disks: [foreign, fast, imported],
    files: [],
    names,
  });
  // No volume is in the first folder.
  const fastPlates = `/fast/csi/${platesFolder(testCluster)}`;
  assert.deepEqual(add, [fastPlates, ...[1, 2].map((at) => `${fastPlates}/${formatPlate(names[at]!)}`)]);
});

Deno.test("planPlates() makes nothing where no pool is mounted, and no plate elsewhere for a volume there", () => {
  const names = [nameOf("a-1"), nameOf("b-1"), nameOf(`snap-${"0a".repeat(14)}`)];
  const fast = aDisk(aRecord({}), { id: "b-1", imagePath: "/fast/csi/b-1.img" });
  const view = {
    ...{ cluster: testCluster, basePaths: ["/fast/csi", testBase], disks: [...disks("a-1"), fast] },
    ...{ files: [] as readonly StoredFile[], names },
  };
  const { add, isOverLimit } = planPlates({ ...view, pools: [pool("pool")] });
  assert.deepEqual([add, isOverLimit], [[plates, pathOf(names[0]!), pathOf(names[2]!)], false]);
  assert.deepEqual(planPlates({ ...view, pools: [] }).add, []);
  // What came to the router's own storage when no pool was mounted is no place either.
  assert.deepEqual(planPlates({ ...view, pools: [], files: [folder(plates)] }).add, []);
  const shownPlates = shown(names[0]!, names[2]!);
  const { replaced, idle } = planPlates({ ...view, pools: [], files: shownPlates });
  assert.deepEqual([replaced, idle], [[], []]);
});

Deno.test("planPlates() makes plates only in folders that hold a volume of the cluster, or plates already", () => {
  const snapshot = nameOf(`snap-${"0a".repeat(14)}`);
  const imported = aDisk(aRecord({}), { id: "films", imagePath: "/elsewhere/films.img" });
  const view = { cluster: testCluster, basePaths: [testBase, "/fast/csi"], pools };
  const names = [snapshot, nameOf("films")];
  const alone = planPlates({ ...view, disks: [imported], files: [], names });
  assert.deepEqual(alone.add, []);
  const others = [aDisk(aRecord({ cluster: "ffffffff" })), aDisk(aRecord({}), { id: "no-claim" })];
  assert.deepEqual(planPlates({ ...view, disks: [imported, ...others], files: [], names }).add, []);
  const beside = planPlates({ ...view, disks: [imported], files: [folder(plates)], names });
  assert.deepEqual(beside.add, names.map(pathOf).toSorted());
});

Deno.test("planPlates() makes plates for volumes of the legacy driver, taken over or not, and for imported ones", () => {
  const legacy = ["0f8fad5b-d9cb-469f-a165-70867728950e", "1f8fad5b-d9cb-469f-a165-70867728950e"].map((
    uuid,
  ) => `pvc-${uuid}`);
  const [before, taken] = legacy.map((id) =>
    aDisk(aRecord(), { id, imagePath: `${testBase}/${id}.img`, exportNqn: `${testPrefix}:${id}` })
  );
  const imported = aDisk(aRecord({ source: "i:0123456789abcdef" }), {
    id: "films",
    imagePath: "/pool/films.img",
  });
  const disks = [{ ...before!, comment: "" }, taken!, imported];
  const names = disks.map(({ id }) => nameOf(id));
  const { add } = planPlates({ cluster: testCluster, basePaths: [testBase], pools, disks, files: [], names });
  assert.deepEqual(add, [plates, ...names.map(pathOf).toSorted()]);
});

Deno.test("planPlates() removes the plate of an earlier claim only once the present one is there", () => {
  const [before, after] = [nameOf("a-1", "prime-0123"), nameOf("a-1", "photos")];
  const first = plan({ names: [after], files: shown(before) });
  assert.deepEqual([first.add, first.replaced], [[pathOf(after)], []]);
  const second = plan({ names: [after], files: shown(before, after) });
  assert.deepEqual([second.add, second.replaced], [[], [pathOf(before)]]);
});

Deno.test("planPlates() keeps the plate of a volume that no PersistentVolume names while its disk is there", () => {
  const before = nameOf("a-1");
  assert.deepEqual(plan({ files: shown(before) }), {
    ...{ add: [], replaced: [], idle: [], empty: [], isOverLimit: false },
  });
  assert.deepEqual(plan({ files: shown(before), ids: [] }).idle.map(({ id }) => id), ["a-1"]);
  // Its disk comes late.
  assert.deepEqual(plan({ names: [before], files: shown(before), ids: [] }).idle, []);
});

Deno.test("planPlates() never removes a plate in which a person has put something", () => {
  const [before, after] = [nameOf("a-1", "x"), nameOf("a-1", "y")];
  const note = { path: `${pathOf(before)}/note.txt`, directory: false, sizeBytes: 1n };
  const { replaced, idle } = plan({ names: [after], files: [...shown(before, after), note] });
  assert.deepEqual([replaced, idle], [[], []]);
  assert.deepEqual(plan({ files: [...shown(before), note], ids: [] }).idle, []);
});

Deno.test("planPlates() makes at most 20 at once, and none beyond 2,000", () => {
  const ids = Array.from({ length: maxPlates + 1 }, (_, at) => `v-${String(at).padStart(4, "0")}`);
  const names = ids.map((id) => nameOf(id));
  const first = plan({ names: names.slice(0, 30), ids });
  assert.equal(first.add.length, maxPlateChanges);
  assert.equal(first.isOverLimit, false);
  const last = plan({ names, ids, files: shown(...names.slice(0, maxPlates)) });
  assert.deepEqual([last.add, last.isOverLimit], [[], true]);
});

Deno.test("planPlates() replaces the plate of an earlier claim although there is room for no other one", () => {
  const ids = Array.from({ length: maxPlates }, (_, at) => `v-${String(at).padStart(4, "0")}`);
  const names = ids.map((id) => nameOf(id));
  const after = nameOf("v-0007", "photos");
  const now = [...names.filter(({ id }) => id !== after.id), after, nameOf("new-1")];
  const files = shown(...names);
  const first = plan({ names: now, ids: [...ids, "new-1"], files });
  assert.deepEqual([first.add, first.replaced, first.isOverLimit], [[pathOf(after)], [], true]);
  const second = plan({ names: now, ids: [...ids, "new-1"], files: [...files, folder(pathOf(after))] });
  assert.deepEqual([second.add, second.replaced], [[], [pathOf(names[7]!)]]);
});

Deno.test("planPlates() counts whatever lies among the plates, which a router may name otherwise than it was told", () => {
  const odd = Array.from({ length: maxPlates }, (_, at) => folder(`${plates}/DEFAULT~${at}`));
  const { add, isOverLimit } = plan({ names: [nameOf("a-1")], files: [folder(plates), ...odd] });
  assert.deepEqual([add, isOverLimit], [[], true]);
});

Deno.test("planPlates() names the folder that nothing needs any more", () => {
  assert.deepEqual(plan({ files: shown(), ids: [] }).empty, [plates]);
  assert.deepEqual(plan({ files: shown(), names: [nameOf("a-1")] }).empty, []);
  assert.deepEqual(plan({ files: shown(nameOf("a-1")) }).empty, []);
});

Deno.test("plateLeftovers() keeps the plates of ids with an image, a snapshot, or a volume's snapshots", () => {
  const snapshot = `snap-${"0a".repeat(14)}`;
  const legacy = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
  const names = ["image-1", "copy-1", "source-1", snapshot, legacy, "gone-1"].map((id) => nameOf(id));
  const files = [
    folder(`${testBase}/image-1.${testCluster}`),
    folder(`${testBase}/copy-1.${testCluster}.img.0a0b0c0d.part`),
    { path: `${testBase}/${snapshot}.source-1.abc.n.${testCluster}.img`, directory: false, sizeBytes: 1n },
    { path: `${testBase}/${legacy}.img`, directory: false, sizeBytes: 1n },
  ];
  const idle = parsePlates(shown(...names), testCluster, [testBase]);
  assert.deepEqual(plateLeftovers(idle, files, testCluster), [pathOf(nameOf("gone-1"))]);
});

Deno.test("judgePlates() rebuilds what one whole plate says, and gives the reason for all others", () => {
  const of = (id: string, name: string, over: Partial<NamePlate> = {}): NamePlate => ({
    ...nameOf(id, name),
    isCut: false,
    ...over,
  });
  const verdicts = judgePlates([
    of("whole-1", "photos"),
    // The same in two base folders.
    of("whole-1", "photos"),
    of("cut-1", "xxx", { isCut: true }),
    of("two-1", "before"),
    of("two-1", "after"),
    of("class-1", "same"),
    of("class-1", "same", { className: "" }),
    of("kept-1", "db"),
    of("kept-2", "db"),
  ]);
  const text = (id: string) => {
    const verdict = verdicts.get(id)!;
    return "plate" in verdict ? verdict.plate.name : verdict.reason;
  };
  assert.equal(text("whole-1"), "photos");
  assert.equal(text("cut-1"), "its name plate is cut: default/xxx…");
  assert.match(text("two-1"), /^it has 2 name plates: default\/before of the class rds-ext4, default\/after/);
  assert.match(text("class-1"), /default\/same of the class rds-ext4, default\/same of no class$/);
  assert.equal(text("kept-1"), "the claim default/db is that of kept-2 too");
  assert.equal(text("kept-2"), "the claim default/db is that of kept-1 too");
});

Deno.test("judgePlates() rebuilds no claim that a cut name plate of another volume may be of", () => {
  const namespace = "n".repeat(60);
  const long = "x".repeat(70);
  const read = (id: string, name: string, over: Partial<ObjectName> = {}) =>
    parsePlate(formatPlate({ id, namespace, name, className: "rds-ext4", ...over })!)!;
  const pvc = `pvc-${"0a".repeat(14)}`;
  const cut = read(pvc, long);
  const reasonOf = (...plates: NamePlate[]) => {
    const verdict = judgePlates(plates).get(plates[0]!.id)!;
    return "reason" in verdict ? verdict.reason : undefined;
  };
  // The shorter the id of an imported disk, the longer is the name that fits beside it.
  const same = read("films", long);
  assert.deepEqual([cut.isCut, same.isCut], [true, false]);
  const doubt = `the claim ${namespace}/${long} may be on the cut name plate of ${pvc} too`;
  assert.equal(reasonOf(same, cut), doubt);
  assert.equal(reasonOf(read("films", long, { className: "" }), cut), doubt);
  assert.equal(reasonOf(read("films", "other"), cut), undefined);
  assert.equal(reasonOf(read("films", long, { namespace: "m".repeat(60) }), cut), undefined);
  const snapshot = read(`snap-${"0a".repeat(14)}`, long);
  assert.equal(snapshot.isCut, true);
  assert.equal(reasonOf(same, snapshot), undefined);
  // Cut behind a plus: a dot, or what stands before a dash.
  const legacy = "0f8fad5b-d9cb-469f-a165-70867728950e";
  for (const tail of [`.${"y".repeat(30)}`, `pvc-${legacy}`]) {
    for (let before = 20; before < 70; before++) {
      const name = "x".repeat(before) + tail;
      const [whole, other] = [read("f", name, { className: "" }), read(pvc, name)];
      if (whole.isCut || !other.isCut) continue;
      assert.match(reasonOf(whole, other) ?? "none", /may be on the cut name plate/, name);
    }
  }
});
