import assert from "node:assert/strict";
import { shareProblem } from "./directory_share.ts";

const share = { slot: "raid2", isShared: false, sizeBytes: 1n << 40n, freeBytes: 1n << 39n };

Deno.test("shareProblem() advises nobody to share a pool on which images of block volumes lie", () => {
  const view = { share, images: ["/share/csi/pvc-1.img"], mountsBelow: [] };
  const reason = shareProblem(view, "share")!;
  assert.doesNotMatch(reason, /nfs-sharing=yes/);
  assert.match(reason, /it holds images of block volumes/);
  assert.match(shareProblem({ ...view, images: [] }, "share")!, /nfs-sharing=yes/);
});
