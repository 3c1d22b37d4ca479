import assert from "node:assert/strict";
import { formatFix } from "../../volume/model/finding.ts";
import { parseRow } from "../../routeros/console/json.ts";
import { routerFixes } from "./fixes.ts";
import { judgeAutoSharing, judgeNfsPort, judgePoolsOfVolumes, judgeShare } from "./shares.ts";

const block = { slot: "raid1", mountPoint: "storage-pool", isShared: false };
const share = { slot: "raid2", mountPoint: "share", isShared: true };
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
  assert.deepEqual(judge([block, share], [own]), ["ok: no pool with block volumes is shared over NFS"]);
  assert.match(
    judge([{ ...block, isShared: true }], [own])[0]!,
    /^problem: \/storage-pool holds 1 images.*port 2049/,
  );
  assert.match(
    judge([{ ...block, isShared: true }], [])[0]!,
    /^problem: \/storage-pool is a pool for block volumes/,
  );
  assert.match(judge([block, share], [image])[0]!, /^problem: \/share holds 1 images/);
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
  assert.match(judge([{ ...share, isShared: false }])[0]!, /^problem: \/share is not shared over NFS/);
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
  const unshared = { ...share, isShared: false };
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
