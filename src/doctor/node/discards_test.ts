import assert from "node:assert/strict";
import { call, FakeNode } from "../../../tests/fakes/node_deps.ts";
import { checkDiscards } from "./discards.ts";
import { volumesOfNode } from "./volumes.ts";

/** The check's findings if the kernel has that in `discard_max_bytes` of the volume's device. */
async function said(node: FakeNode, bytes: string | undefined): Promise<readonly string[]> {
  const readText = (path: string) =>
    path === "/sys/dev/block/7:3/queue/discard_max_bytes" ? bytes : undefined;
  const { state, found } = await checkDiscards(
    node.deps,
    { readText },
    await volumesOfNode(node.deps, call()),
    call(),
  );
  return [state, found];
}

Deno.test("checkDiscards() reports whether the devices of the volumes take discards", async () => {
  const node = new FakeNode();
  assert.deepEqual(await said(node, "2147483648"), ["skipped", "no volume is connected here"]);
  await node.stage();
  const taken = "1 of 1 devices take them; whether the router then frees room is the answer discard of " +
    "rds-csi doctor --probe";
  assert.deepEqual(await said(node, "2147483648"), ["ok", taken]);
  const none = "0 of 1 devices take them, so a trim frees nothing of pvc-1";
  assert.deepEqual(await said(node, "0"), ["ok", none]);
  assert.deepEqual(await said(node, undefined), ["skipped", "no volume is connected here"]);
});
