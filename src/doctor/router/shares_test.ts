import assert from "node:assert/strict";
import { formatFix } from "../../volume/model/finding.ts";
import { parseRow } from "../../routeros/console/json.ts";
import { poolsQuery } from "../../routeros/store/queries.ts";
import { routerFixes } from "./fixes.ts";
import { judgeAutoSharing, judgeNfsPort, judgePoolsOfVolumes, judgeShare, sharesCheck } from "./shares.ts";

const block = { slot: "raid1", mountPoint: "storage-pool", sharing: [] as readonly string[] };
const share = { slot: "raid2", mountPoint: "share", sharing: ["nfs-sharing"] };
const image = { imagePath: "/share/csi/pvc-x.0123abcd.img" };
const directories: readonly string[] = [];

function shown(findings: readonly { readonly state: string; readonly found: string }[]): string[] {
  return findings.map(({ state, found }) => `${state}: ${found}`);
}

Deno.test("a pool with block volumes must not be shared, nor one that waits for them", () => {
  const basePaths = ["/storage-pool/csi"];
  const own = { imagePath: "/storage-pool/csi/pvc-x.0123abcd.img" };
  const judge = (pools: readonly typeof block[], volumes: readonly typeof image[]) =>
    shown(judgePoolsOfVolumes({ pools, volumes, directories }, { basePaths }));
  assert.deepEqual(judge([block, share], [own]), ["ok: no pool with block volumes is shared"]);
  assert.match(
    judge([{ ...block, sharing: ["nfs-sharing"] }], [own])[0]!,
    /^problem: \/storage-pool holds 1 images.*shares it \(nfs-sharing\)/,
  );
  assert.match(
    judge([{ ...block, sharing: ["smb-sharing"] }], [])[0]!,
    /^problem: \/storage-pool is a pool for block volumes/,
  );
  assert.match(judge([block, share], [image])[0]!, /^problem: \/share holds 1 images/);
});

/** The check of a router with one pool that has an image, whose row has these properties as well. */
async function checked(properties: Readonly<Record<string, unknown>>) {
  const row = { slot: "raid1", "mount-point": "storage-pool", ...properties };
  const router = {
    read: (_: string, query: unknown) => Promise.resolve(query === poolsQuery ? JSON.stringify([row]) : "{}"),
    inventory: () => Promise.resolve({ volumes: [{ imagePath: "/storage-pool/csi/a.img" }] }),
  };
  const settings = { kind: "block", basePaths: ["/storage-pool/csi"] };
  return (await sharesCheck.run(router as never, settings as never))[0]!;
}

Deno.test("every way of sharing a pool of block volumes is a problem, with the property that ends it", async () => {
  for (const property of ["nfs-sharing", "smb-sharing", "media-sharing"]) {
    const { state, found, fix } = await checked({ [property]: true });
    assert.equal(state, "problem", property);
    assert.match(found, new RegExp(`shares it \\(${property}\\)`));
    assert.equal(fix, formatFix(routerFixes.shareOff("raid1", property)));
  }
  const two = await checked({ "nfs-sharing": false, "smb-sharing": "yes", "media-sharing": "yes" });
  assert.match(two.fix!, /\] smb-sharing=no media-sharing=no$/);
  for (const none of [{}, { "nfs-sharing": false, "smb-sharing": "no", "media-sharing": false }]) {
    assert.equal((await checked(none)).state, "ok", JSON.stringify(none));
  }
});

Deno.test("sharing that the router turns on by itself is a warning that names the settings", () => {
  const judge = (json: string) => judgeAutoSharing(parseRow(json, "settings"));
  assert.deepEqual(judge('{"auto-smb-sharing":false}'), []);
  const [found] = judge('{"auto-smb-sharing":"yes","auto-media-sharing":true}');
  assert.match(shown([found!])[0]!, /^warning: .*: auto-smb-sharing, auto-media-sharing$/);
  const command = "/disk/settings/set auto-smb-sharing=no auto-media-sharing=no";
  assert.equal(found!.fix, command);
});

Deno.test("a share for directories is mounted, shared, and holds no image", () => {
  const basePaths = ["/share/k8s"];
  const judge = (
    pools: readonly typeof block[],
    volumes: readonly typeof image[] = [],
    paths = directories,
  ) => shown(judgeShare({ pools, volumes, directories: paths }, { basePaths }));
  const own = "/share/k8s/a.0123abcd";
  assert.match(
    judge([block, share], [], [own])[0]!,
    /^ok: \/share is shared.*directories of this cluster: 1$/,
  );
  assert.match(judge([block])[0]!, /^problem: \/share is on no mounted pool/);
  assert.match(
    judge([{ ...share, sharing: ["smb-sharing"] }])[0]!,
    /^problem: \/share is not shared over NFS/,
  );
  assert.match(
    judge([share], [image])[0]!,
    /^problem: \/share holds 1 images of disks, such as \/share\/csi/,
  );
  const misplaced = judge([share], [], [own, "/share/old/b.0123abcd"]);
  assert.match(
    misplaced[0]!,
    /^warning: 1 directories of this cluster lie outside of --base-path, such as \/share\/old\/b/,
  );
  const facts = { pools: [share], volumes: [], directories: [own, "/share/old/b.0123abcd"] };
  assert.equal(judgeShare(facts, { basePaths })[0]!.fix, "add --base-path /share/old after the present ones");
});

Deno.test("nobody is advised to share a pool on which images of disks lie", () => {
  const unshared = { ...share, sharing: ["smb-sharing"] };
  const judge = (volumes: readonly typeof image[]) =>
    judgeShare({ pools: [unshared], volumes, directories }, { basePaths: ["/share/k8s"] })
      .map(({ fix }) => fix);
  assert.deepEqual(judge([]), [formatFix(routerFixes.shareOn("raid2"))]);
  assert.deepEqual(judge([image]), [formatFix(routerFixes.ownShare())]);
});

Deno.test("an NFS port that cannot be reached from here is a warning: a node may reach it", () => {
  const judge = (reach: Parameters<typeof judgeNfsPort>[0]["reach"]) =>
    judgeNfsPort({ address: "10.0.0.1", port: 2049, reach, isNode: true }).state;
  assert.deepEqual([judge({ state: "open", ms: 1 }), judge({ state: "refused", reason: "refused" })], [
    "ok",
    "warning",
  ]);
});
