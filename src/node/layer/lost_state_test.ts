// What waits in a map of which the node has no state file any more, or a damaged one.
import assert from "node:assert/strict";
import { volumeId } from "../../../tests/fakes/node_deps.ts";
import { dropped, givenUp, inUse, mapName as name } from "../../../tests/fakes/watched_map.ts";

for (const what of ["lost", "damaged"] as const) {
  Deno.test(`what waits in a map whose state file is ${what} is reported, and fails after the default time`, async () => {
    const { node, watch } = await inUse();
    const path = `/state/volumes/${volumeId}.json`;
    if (what === "lost") node.paths.nodes.delete(path);
    else node.paths.nodes.set(path, { ...node.paths.nodes.get(path)!, text: "{" } as never);
    await watch.check();
    assert.equal(node.events.waiting.size, 0, "its device is there");
    givenUp(node);
    await watch.check();
    assert.deepEqual([...node.events.waiting], [volumeId]);
    await node.clock.advance(1_799_000);
    await watch.check();
    assert.equal(node.mapper.write(name), "waits");
    await node.clock.advance(1_000);
    await watch.check();
    assert.equal(node.mapper.write(name), "fails");
    assert.equal(node.events.waiting.size, 0);
    dropped(node);
    await node.clock.advance(60_000);
    await watch.check();
    const given = node.reported.filter((line) => line.startsWith("giving up a volume"));
    assert.equal(given.length, 1);
  });
}
