import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { assertNothingElseIn, assertShareUsable, shareProblem } from "./directory_share.ts";

const share = { slot: "raid2", isShared: false, freeBytes: 1n << 39n, filesystemUuid: "" };

Deno.test("shareProblem() advises nobody to share a pool on which images of block volumes lie", () => {
  const view = { share, images: ["/share/csi/pvc-1.img"], mountsBelow: [], upMs: 120_000 };
  const reason = shareProblem(view, "share")!;
  assert.doesNotMatch(reason, /nfs-sharing=yes/);
  assert.match(reason, /it holds images of block volumes/);
  assert.match(shareProblem({ ...view, images: [] }, "share")!, /nfs-sharing=yes/);
});

Deno.test("no image lies on a share, or in a directory, only once the router has listed all of its disks", () => {
  const view = { share: { ...share, isShared: true }, images: [], mountsBelow: [], upMs: 119_999 };
  const settled = { ...view, upMs: 120_000 };
  assert.throws(() => assertShareUsable(view, "share", 120_000), refusal("unavailable"));
  assert.throws(() => assertNothingElseIn(view, "/share/a", 120_000), refusal("unavailable"));
  assert.equal(assertShareUsable(settled, "share", 120_000), settled.share);
  assertNothingElseIn(settled, "/share/a", 120_000);
});
