// A fence takes no lock that the layer watch respects: it may come between any two steps of a repair.
import { aStagingState } from "../../../tests/fakes/staging_state.ts";
import assert from "node:assert/strict";
import { call, nqn, volumeId } from "../../../tests/fakes/node_deps.ts";
import {
  dropped,
  givenUp,
  inUse,
  mapName,
  type Watched,
  watching,
} from "../../../tests/fakes/watched_map.ts";

const absences: Readonly<Record<string, (watched: Watched) => void>> = {
  "under another identity": ({ node }) => dropped(node),
  "after the kernel gave the connection up": ({ node }) => {
    dropped(node);
    givenUp(node);
    node.offered = () => [nqn];
  },
};

/** Begins a fence at one step of a check. Returns the fence; undefined when the check had fewer steps. */
async function fenceAt({ node, watch }: Watched, at: number): Promise<Promise<boolean> | undefined> {
  let fence: Promise<boolean> | undefined;
  let step = 0;
  const take = () => {
    if (step++ !== at) return;
    // A fence judges the connection while it is down, whatever becomes of it before the fence ends it.
    node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
    fence = node.service.fencing.forceDisconnect(
      { volumeId, nqn, stagingState: aStagingState(node.stagingState!) },
      "a test",
      call(),
    );
  };
  node.before = take;
  node.after = take;
  await watch.check();
  node.before = () => {};
  node.after = () => {};
  return fence;
}

for (const [what, makeAbsent] of Object.entries(absences)) {
  Deno.test(`a fence at any step of a repair ${what} wins: nothing waits, and nothing is written`, async () => {
    let at = 0;
    for (;; at++) {
      const watched = await inUse();
      const { node, watch } = watched;
      makeAbsent(watched);
      assert.equal(node.mapper.write(mapName), "waits");
      const fence = await fenceAt(watched, at);
      if (fence === undefined) break;
      assert.equal(await fence, true, `step ${at}`);
      node.offered = () => [];
      assert.equal(node.mapper.maps.get(mapName)!.table!.queues, false, `step ${at}`);
      node.connections.clear();
      for (const looking of [watch, watching(node).watch]) {
        await looking.check();
        await node.clock.advance(3_000);
        await looking.check();
        assert.equal(node.mapper.maps.get(mapName)!.table!.queues, false, `step ${at}`);
      }
    }
    assert.ok(at > 4, `${at} steps`);
  });
}
