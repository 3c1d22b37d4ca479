import assert from "node:assert/strict";
import { aClusterVolume, anAttachment } from "../../../../tests/fakes/cluster_view.ts";
import { LookCounter } from "../../../../tests/fakes/look_counter.ts";
import {
  aDisk,
  aHolder,
  aPool,
  aRecord,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
  testPrefix,
} from "../../../../tests/fakes/records.ts";
import { judgeAudit } from "./audit.ts";
import { type AuditFinding, type AuditScope, isDue, orphanGraceMs } from "./finding.ts";
import type { FileView, Inventory, StoredFile, StoredVolume } from "../../model/inventory.ts";

const nowMs = 1_800_000_000_000;
const nowSeconds = nowMs / 1000;
const pool = aPool();
const epoch = { counter: 3, nonce: "0a0b0c0d" };

function file(path: string, directory = false): StoredFile {
  return { path, directory, sizeBytes: directory ? 0n : 1n << 30n };
}

/** Disks with their images, and other files. */
function view(disks: readonly StoredVolume[], files: readonly StoredFile[] = []): Inventory & FileView {
  const images = disks.map(({ imagePath }) => file(imagePath));
  return { volumes: disks, files: [...images, ...files], pools: [pool], upMs: 1e9 };
}

function scope(over: Partial<AuditScope> = {}): AuditScope {
  return {
    cluster: testCluster,
    basePaths: [testBase],
    used: undefined,
    vouched: false,
    nowMs,
    isCopying: () => false,
    ...over,
  };
}

function kinds(findings: readonly AuditFinding[]): string[] {
  return findings.map(({ kind, id }) => `${kind} ${id}`);
}

const idle = aDisk(aRecord({ epoch, withdrawnAtSeconds: nowSeconds - 7 * 86_400 }));
const held = aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id: "pvc-2" });
const used = (...ids: string[]) => ({
  volumes: ids.map((id) => aClusterVolume(id)),
  ...{ attachments: [], orphans: [] },
});

Deno.test("judgeAudit() finds nothing on a router where everything has its owner", () => {
  const attachments = [anAttachment("pvc-2", "node-1")];
  const all = scope({ used: { ...used("pvc-1", "pvc-2"), attachments } });
  assert.deepEqual(judgeAudit(view([idle, held]), all), []);
  assert.deepEqual(judgeAudit(view([idle, held]), scope()), []);
});

const legacyId = "snap-7c9e6679-7425-40de-944b-e07fc1f90ae7-at-1739800000";
const legacySnapshot: StoredVolume = {
  ...idle,
  id: legacyId,
  imagePath: `${testBase}/${legacyId}.img`,
  exportNqn: "",
  comment: "",
};

const lone = `${testBase}/pvc-9.${testCluster}`;
const snapshot = `${testBase}/snap-${"1".repeat(28)}.pvc-1.${nowSeconds.toString(36)}.n.${testCluster}`;

Deno.test("judgeAudit() names each object that lacks its owner, by kind, and says what protects it", () => {
  const cases: readonly [string, Inventory & FileView, string, RegExp | undefined][] = [
    ["a disk whose image is gone", { ...view([idle]), files: [] }, "disk-without-image pvc-1", /by hand/],
    [
      "an image without its disk",
      view([], [file(`${lone}/disk.img`)]),
      "image-without-disk pvc-9",
      /no cluster was asked/,
    ],
    ["a plain one", view([], [file(`${lone}.img`)]), "image-without-disk pvc-9", /no cluster was asked/],
    [
      "an empty subvolume",
      view([], [file(lone, true)]),
      "leftover-subvolume pvc-9",
      /no cluster was asked/,
    ],
    ["an unfinished copy", view([], [file(`${lone}.img.0011aabb.part`)]), "unfinished-copy pvc-9", undefined],
    [
      "an export that nobody holds",
      view([{ ...idle, exported: true }]),
      "export-without-holder pvc-1",
      /exported/,
    ],
    [
      "another NQN",
      view([{ ...held, exportNqn: `${testPrefix}:pvc-2:9-ffffffff` }]),
      "export-differs pvc-2",
      /published/,
    ],
    [
      "a damaged record",
      view([{ ...idle, comment: idle.comment.replace("b=1", "b=2") }]),
      "record-damaged pvc-1",
      /is not known/,
    ],
    [
      "a snapshot of a volume that is gone",
      view([], [file(`${snapshot}/disk.img`)]),
      `snapshot-without-source snap-${"1".repeat(28)}`,
      /VolumeSnapshot/,
    ],
    ["somebody's disk", view([{ ...idle, comment: "mine" }]), "no-record pvc-1", /did not make it/],
    [
      "another cluster's",
      view([aDisk(aRecord({ cluster: "ffffffff" }))]),
      "other-cluster pvc-1",
      /another cluster/,
    ],
  ];
  for (const [name, shown, expected, kept] of cases) {
    const findings = judgeAudit(shown, scope());
    assert.deepEqual(kinds(findings), [expected], name);
    if (kept === undefined) assert.equal(findings[0]!.kept, undefined, name);
    else assert.match(findings[0]!.kept!, kept, name);
  }
});

Deno.test("judgeAudit() reports a disk that cannot be read, and nothing that follows from it", () => {
  const attachments = [anAttachment("pvc-2", "node-1")];
  const asked = scope({ used: { ...used("pvc-2"), attachments } });
  const odd = { ...held, exported: false, unreadable: "no size" };
  const found = judgeAudit(view([odd]), asked);
  assert.deepEqual(found.map(({ kind, id, kept }) => [kind, id, kept]), [
    ["disk-unreadable", "pvc-2", "it counts as in use"],
  ]);
  const clone = aDisk(aRecord({ source: "v:pvc-1" }), { id: "pvc-3", unreadable: "no size" });
  const source = judgeAudit(view([idle, clone]), scope({ used: used("pvc-2") })).find(({ id }) =>
    id === "pvc-1"
  );
  assert.match(source?.kept ?? "", /volumes were made from it/);
});

Deno.test("judgeAudit() reports a snapshot that no object names, even if its source exists, once it is old enough", () => {
  const id = `snap-${"1".repeat(28)}`;
  const shown = view([idle], [file(snapshot, true), file(`${snapshot}/disk.img`)]);
  const judge = (snapshots: ReadonlySet<string> | undefined, atMs = nowMs + orphanGraceMs) =>
    judgeAudit(shown, scope({ nowMs: atMs, used: { ...used("pvc-1"), ...snapshots && { snapshots } } }));
  assert.deepEqual(judge(new Set([id])), []);
  assert.deepEqual(judge(undefined), []);
  const [finding] = judge(new Set(["snap-of-another"]));
  assert.deepEqual([finding!.kind, finding!.id, finding!.kept], ["snapshot-without-object", id, undefined]);
  assert.equal(isDue(finding!, nowMs * 2, orphanGraceMs), false, "it goes when a person says so");
  assert.match(judge(new Set(), nowMs + 1)[0]!.kept!, /younger than 10 minutes/);
});

Deno.test("judgeAudit() reports a disk that the router itself uses, and how", () => {
  const [finding] = judgeAudit(view([{ ...held, routerUses: ["its file system is mounted"] }]), scope());
  assert.equal(finding!.kind, "used-by-router");
  assert.match(finding!.found, /the router itself uses the disk: its file system is mounted/);
  assert.match(finding!.kept!, /does not publish it before/);
});

Deno.test("judgeAudit() reports what is known of a snapshot of the legacy driver, and that it is never deleted by age", () => {
  const nqn = `${testPrefix}:pvc-0f8fad5b-d9cb-469f-a165-70867728950e`;
  const exported = { ...legacySnapshot, exported: true, exportNqn: nqn };
  const [finding] = judgeAudit(view([exported]), scope({ used: used(), vouched: true }));
  assert.equal(finding!.kind, "earlier-snapshot");
  assert.match(
    finding!.kept!,
    /its disk entry on the router, and then its image: docs[/]guides[/]from-the-go-/,
  );
  assert.match(finding!.found, /no copy of a volume's data.*exported=true nqn=.*:pvc-0f8fad5b/);
  assert.equal(finding!.sinceSeconds, 1_739_800_000);
  assert.equal(isDue(finding!, nowMs, 0), false);
  const sharer = { ...idle, id: "disk1", imagePath: legacySnapshot.imagePath, comment: "" };
  const shared = judgeAudit(view([legacySnapshot, sharer]), scope()).find(({ id }) => id === legacyId);
  const elsewhere = { ...legacySnapshot, imagePath: `/pool/x/${legacyId}.img` };
  assert.deepEqual(kinds(judgeAudit(view([elsewhere]), scope())), [`no-record ${legacyId}`]);
  assert.match(shared!.kept!, /not its image, which other disks use: disk=disk1/);
});

const goneEarlier = "pvc-7c9e6679-7425-40de-944b-e07fc1f90ae7";

Deno.test("judgeAudit() reports an image of the legacy driver that no disk uses, and never that it may be deleted", () => {
  const path = `${testBase}/${goneEarlier}.img`;
  const shown = view([], [file(path)]);
  const image = (over: Partial<AuditScope>) =>
    judgeAudit(shown, scope(over)).filter((one) => one.path === path).map(({ kind, kept }) => [kind, kept]);
  const kept = "its owner is not known: check by hand whether it is needed";
  assert.deepEqual(image({}), [["earlier-image", kept]]);
  assert.deepEqual(image({ vouched: true }), [["earlier-image", kept]]);
  assert.deepEqual(image({ used: used() }), [["earlier-image", kept]]);
  const needed = "a PersistentVolume names it: the data may be needed";
  assert.deepEqual(image({ used: used(goneEarlier) }), [["image-without-disk", needed]]);
  const [{ found }] = judgeAudit(shown, scope()) as [AuditFinding];
  assert.match(found, /named as the legacy driver.*no disk uses: 1 GiB/);
});

Deno.test("judgeAudit() reports no file as an image of the legacy driver that has another form of name, or that a disk uses", () => {
  const path = `${testBase}/${goneEarlier}.img`;
  const files = [
    file(`${testBase}/${goneEarlier}.img.bak`),
    file(`${testBase}/pvc-9.img`),
    file(`/pool/elsewhere/${goneEarlier}.img`),
    file(`${testBase}/sub/${goneEarlier}.img`),
  ];
  assert.deepEqual(judgeAudit(view([], [...files, file(path, true)]), scope({ vouched: true })), []);
  const user = { ...idle, id: "disk1", imagePath: path, comment: "" };
  assert.deepEqual(kinds(judgeAudit(view([user], files), scope())), ["no-record disk1"]);
});

Deno.test("judgeAudit() reports a snapshot's subvolume without an image, and that deleting its VolumeSnapshot removes it", () => {
  const findings = judgeAudit(view([idle], [file(snapshot, true)]), scope({ vouched: true }));
  assert.deepEqual(kinds(findings), [`leftover-subvolume snap-${"1".repeat(28)}`]);
  assert.match(findings[0]!.kept!, /VolumeSnapshot may name it/);
  assert.equal(isDue(findings[0]!, nowMs, 0), false);
  const whole = [file(snapshot, true), file(`${snapshot}/disk.img`)];
  assert.deepEqual(judgeAudit(view([idle], whole), scope()), []);
  const others = snapshot.replace(/[^.]*$/, "ffffffff");
  assert.deepEqual(judgeAudit(view([idle], [file(others, true)]), scope()), []);
});

Deno.test("judgeAudit() keeps a subvolume that holds another file, because that would go with it", () => {
  const vouched = scope({ vouched: true });
  const folder = file(lone, true);
  const [image, other] = [file(`${lone}/disk.img`), file(`${lone}/disk.img.saved`)];
  const keptOf = (files: readonly StoredFile[]) =>
    judgeAudit(view([], files), vouched).map(({ kept }) => kept);
  assert.deepEqual([keptOf([folder]), keptOf([folder, image])], [[undefined], [undefined]]);
  assert.deepEqual(keptOf([folder, file(`${lone}/no-disk-0a1b2c3d`, true)]), [undefined]);
  for (const files of [[folder, other], [folder, image, other]]) {
    const [kept, ...more] = keptOf(files);
    assert.match(kept!, /another file is in its subvolume: path=.*disk[.]img[.]saved/);
    assert.deepEqual(more, []);
  }
  const unused = scope({ used: used() });
  const disk = { ...idle, imagePath: subvolumeImage("pvc-1") };
  const beside = file(disk.imagePath.replace("disk.img", "mine.img"));
  assert.deepEqual(judgeAudit(view([disk]), unused).map(({ kept }) => kept), [undefined]);
  assert.match(judgeAudit(view([disk], [beside]), unused)[0]!.kept!, /another file is in its subvolume/);
});

Deno.test("judgeAudit() leaves alone what other clusters and other folders hold", () => {
  const files = [
    file(`${testBase}/pvc-9.ffffffff.img`),
    file(`/pool/elsewhere/pvc-9.${testCluster}.img`),
    file(`${testBase}/precious.${testCluster}.img.bak`),
    file(`${testBase}/snap-${"1".repeat(28)}.pvc-1.1.n.ffffffff.img`),
  ];
  assert.deepEqual(judgeAudit(view([], files), scope({ vouched: true })), []);
});

Deno.test("judgeAudit() compares with the cluster if that was asked", () => {
  const attachments = [anAttachment("pvc-1", "node-3"), anAttachment("pvc-1", "node-4", { attached: false })];
  const findings = judgeAudit(
    view([idle, held]),
    scope({ used: { ...used("pvc-1", "pvc-7"), attachments } }),
  );
  assert.deepEqual(kinds(findings), [
    "pv-without-disk pvc-7",
    "disk-without-pv pvc-2",
    "holder-without-attachment pvc-2",
    "attachment-without-holder pvc-1",
  ]);
});

Deno.test("judgeAudit() concludes nothing from the attachment of an unknown node, or to another cluster's disk", () => {
  const theirs = aDisk(aRecord({ epoch, cluster: "ffffffff" }), { id: "pvc-3" });
  const attachments = [anAttachment("pvc-1", ""), anAttachment("pvc-3", "node-1")];
  const findings = judgeAudit(
    view([idle, theirs]),
    scope({ used: { ...used("pvc-1", "pvc-3"), attachments } }),
  );
  assert.deepEqual(kinds(findings), ["other-cluster pvc-3"]);
});

Deno.test("judgeAudit() reports an attachment whose PersistentVolume is gone, on any node", () => {
  const orphan = { name: "csi-0a", volumeName: "pv-gone", nodeName: "node-1", sinceSeconds: nowSeconds - 60 };
  const orphans = [orphan, { ...orphan, name: "csi-0b", nodeName: "node-2" }];
  const findings = judgeAudit(view([]), scope({ used: { ...used(), orphans } }));
  assert.deepEqual(kinds(findings), ["attachment-without-pv pv-gone", "attachment-without-pv pv-gone"]);
  assert.match(findings[1]!.found, /PersistentVolume.*gone: attachment=csi-0b node=node-2/);
  assert.equal(findings[0]!.sinceSeconds, nowSeconds - 60);
  assert.match(findings[0]!.kept!, /nothing to delete/);
});

Deno.test("judgeAudit() allows deleting a disk without a PersistentVolume only when nothing protects it", () => {
  const young = aRecord({ epoch, withdrawnAtSeconds: nowSeconds - 60 });
  const attachments = [anAttachment("pvc-1", "node-1", { attached: false })];
  const named = { volumes: [], orphans: [], attachments };
  const clone = aDisk(aRecord({ source: "v:pvc-1" }), { id: "pvc-3" });
  const other = { ...held, id: "pvc-3", imagePath: idle.imagePath };
  const cases: readonly [string, Inventory & FileView, Partial<AuditScope>, RegExp | undefined][] = [
    ["nothing", view([idle]), {}, undefined],
    ["it is held", view([{ ...held, id: "pvc-1", imagePath: subvolumeImage("pvc-1") }]), {}, /published/],
    ["it is exported", view([{ ...idle, exported: true }]), {}, /exported/],
    ["the router uses it", view([{ ...idle, routerUses: ["it is swap space"] }]), {}, /router itself uses/],
    ["an attachment names it", view([idle]), { used: named }, /VolumeAttachment/],
    ["a newer version's record", view([aDisk(aRecord({ newerFields: ["z=1"] }))]), {}, /newer version/],
    ["it is young", view([aDisk(young)]), {}, /younger than 10 minutes/],
    ["another file", view([{ ...idle, imagePath: `${testBase}/precious.img` }]), {}, /another name/],
    ["another folder", view([{ ...idle, imagePath: plainImage("pvc-1", "/pool/x") }]), {}, /or folder/],
    ["a snapshot", view([idle], [file(`${snapshot}/disk.img`)]), {}, /were made from it/],
    ["a clone", view([idle, clone]), { used: used("pvc-3") }, /were made from it/],
    ["another disk on it", view([idle, other]), { used: used("pvc-3") }, /another disk/],
    ["a copy that is made of it", view([idle]), { isCopying: () => true }, /copy/],
  ];
  for (const [name, shown, over, kept] of cases) {
    const findings = judgeAudit(shown, scope({ used: used(), ...over }))
      .filter(({ kind, id }) => kind === "disk-without-pv" && id === "pvc-1");
    assert.equal(findings.length, 1, name);
    if (kept === undefined) assert.equal(findings[0]!.kept, undefined, name);
    else assert.match(findings[0]!.kept ?? "", kept, name);
  }
});

Deno.test("judgeAudit() allows deleting an unneeded image when a cluster was asked, or a person vouches", () => {
  const shown = view([], [file(`${lone}.img`)]);
  const kept = (over: Partial<AuditScope>) =>
    judgeAudit(shown, scope(over)).find(({ path }) => path !== "")!.kept;
  assert.equal(kept({ used: used() }), undefined);
  assert.equal(kept({ vouched: true }), undefined);
  assert.match(kept({ used: used("pvc-9") })!, /PersistentVolume names it/);
  assert.match(kept({ used: used(), isCopying: () => true })!, /copy is being made/);
  const elsewhere = view([aDisk(aRecord(), { id: "pvc-9", imagePath: plainImage("pvc-9") })], [
    file(`${lone}/disk.img`),
  ]);
  const [found] = judgeAudit(elsewhere, scope({ used: used("pvc-9") }));
  assert.match(found!.kept!, /uses another file/);
});

Deno.test("judgeAudit() keeps the unfinished copy of a snapshot for as long as another process may make it", () => {
  const part = (hours: number) =>
    file(
      `${testBase}/snap-${"1".repeat(28)}.pvc-1.${
        (nowSeconds - hours * 3600).toString(36)
      }.n.${testCluster}` +
        ".img.0011aabb.part",
    );
  const kept = (hours: number) => judgeAudit(view([idle], [part(hours)]), scope())[0]!.kept;
  assert.match(kept(2)!, /younger than/);
  assert.equal(kept(26), undefined);
});

Deno.test("isDue() needs a known age, in the past, above the grace period and the requested age", () => {
  const [finding] = judgeAudit(view([idle]), scope({ used: used() }));
  const week = 7 * 86_400_000;
  assert.equal(isDue(finding!, nowMs, week), true);
  assert.equal(isDue(finding!, nowMs, week + 1), false);
  assert.equal(isDue({ ...finding!, sinceSeconds: undefined }, nowMs, 0), false);
  assert.equal(isDue({ ...finding!, kept: "it is published" }, nowMs, 0), false);
  assert.equal(isDue({ ...finding!, sinceSeconds: nowSeconds + 60 }, nowMs, 0), false);
  assert.equal(isDue({ ...finding!, sinceSeconds: nowSeconds - orphanGraceMs / 1000 + 1 }, nowMs, 0), false);
});

Deno.test("judgeAudit() looks at each disk, file and object a few times, however many there are", () => {
  const looksAmong = (count: number) => {
    const counter = new LookCounter();
    const of = <Item extends object>(make: (id: string) => Item) =>
      Array.from(
        { length: count },
        (_, index) => counter.counted(make(`pvc-${String(index).padStart(4, "0")}`)),
      );
    const seen = {
      ...view(of((id) => aDisk(aRecord({ epoch, holders: [aHolder("node-1")] }), { id }))),
      // All of them are left of volumes that are gone.
      files: of((id) => file(plainImage(`left-${id}`))),
    };
    const volumes = of((id) => aClusterVolume(id));
    const attachments = of((id) => anAttachment(id, "node-1"));
    counter.looks = 0;
    const findings = judgeAudit(seen, scope({ used: { volumes, attachments, orphans: [] } }));
    assert.equal(findings.length, 2 * count);
    return counter.looks;
  };
  assert.equal(looksAmong(1000), 100 * looksAmong(10));
});
