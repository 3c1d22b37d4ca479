import assert from "node:assert/strict";
import { FakeNode } from "../../../tests/fakes/node_deps.ts";
import { reportMissingLayer } from "./choose_layer.ts";

for (
  const [setting, hasMultipath, says] of [
    ["auto", false, true],
    ["multipath", false, true],
    ["none", false, false],
    ["auto", true, false],
  ] as const
) {
  Deno.test(`reportMissingLayer() says ${says ? "so" : "nothing"} for ${setting} with${hasMultipath ? "" : "out"} the target`, async () => {
    const node = new FakeNode();
    node.mapper.hasMultipath = hasMultipath;
    const settings = { ...node.deps.settings, deviceLayer: setting };
    await reportMissingLayer({ ...node.deps, settings });
    assert.deepEqual(node.reported, says ? ["this node has no device layer"] : []);
  });
}
