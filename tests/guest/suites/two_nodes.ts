import assert from "node:assert/strict";
import type { Random } from "../../../src/volume/ports/system.ts";
import { SeededRandom } from "../../fakes/random.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { GuestVolume } from "../kit/volume.ts";
import { Migration } from "./two_nodes/migration.ts";
import { type Field, makeField } from "./two_nodes/field.ts";
import { Contest, type Trouble, troubles } from "./two_nodes/round.ts";
import { isLong } from "../../support/long.ts";

/** Large enough for a file system with a log, small enough to be looked at block by block. */
const volumeBytes = 64 << 20;

/** Nodes look for what was taken from them, and believe it, sooner than usual. */
const nodeFlags = ["--fence-interval", "1s", "--fence-settle-time", "3s"];

/** That a node which was not asked cannot write any more, whatever befell it. */
export const suite = fencingSuite(
  "two nodes and a router: what is taken from one node takes none of its writes any more",
);

/** The same of nodes whose writers wait in a map of theirs for what is gone. */
export const layerSuite = fencingSuite(
  "two nodes with a device layer and a router: what waits on a node that is fenced is never written",
  ["--device-layer", "multipath"],
);

function fencingSuite(what: string, moreNodeFlags: readonly string[] = []): Suite {
  return {
    what,
    limitMinutes: isLong ? 40 : 12,
    alone: true,
    needsBinary: true,
    run: async (bench) => {
      const seed = bench.seed();
      const field = await makeField(bench, {
        nodes: ["a", "b"],
        nodeFlags: [...nodeFlags, ...moreNodeFlags],
      });
      try {
        await migration(bench, field);
        await rounds(bench, field, new SeededRandom(seed));
        if (moreNodeFlags.length > 0) {
          await bench.test("the volumes that they have are used by maps", async () => {
            const found = await Promise.all(field.nodes.map(({ guest }) => guest.sh("dmsetup table")));
            const tables = found.join("\n").split("\n").filter((line) => line.includes(" multipath "));
            assert.ok(tables.length > 0 && tables.every((line) => line.startsWith("rds-csi-")), found.join());
            return tables.join("; ");
          });
        }
        await bench.test("the driver broke no rule of the router's", async () => {
          assert.deepEqual(await field.router.violations(), []);
          return "no violation";
        });
      } finally {
        await field.controller.stop();
      }
    },
  };
}

/** Two nodes that have a volume at once, of which one leaves. */
async function migration(bench: Bench, field: Field): Promise<void> {
  await bench.test("of two nodes that have a volume, the one that leaves is reported", async () => {
    const volume = await Migration.begin(field, "migrating", volumeBytes);
    return await volume.leave();
  });
}

async function rounds(bench: Bench, field: Field, random: Random): Promise<void> {
  const contests: Record<"ext4" | "block", Contest | undefined> = { ext4: undefined, block: undefined };
  for (const [index, [use, trouble]] of plan().entries()) {
    const isFine = await bench.test(`round ${index + 1}, ${use}, ${trouble}`, async () => {
      contests[use] ??= await Contest.begin(
        field,
        await GuestVolume.create(field.controller.clients.controller, `two-nodes-${use}`, use, volumeBytes),
        random,
      );
      return await contests[use].round(trouble);
    });
    // Who holds what is not known any more.
    if (!isFine) return;
  }
}

/** Every trouble with both kinds of volume, most of all that which needs no luck; a few of them where time is short. */
function plan(): readonly (readonly ["ext4" | "block", Trouble])[] {
  if (!isLong) {
    return [["ext4", "nothing"], ["ext4", "the holder's cable is cut"], ["ext4", "the holder is frozen"], [
      "block",
      "the router is frozen",
    ]];
  }
  return Array.from({ length: 20 }, (_, index) => [
    index % 3 === 2 ? "block" : "ext4",
    troubles[index % troubles.length]!,
  ]);
}
