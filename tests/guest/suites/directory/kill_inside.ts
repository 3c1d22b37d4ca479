// Takes shared directories through their lives while the node is killed: `whole|drawn SEED ONLY ADDRESS SERVED EXPORTED`,
// or `victim STATE` for the process that is killed.

import assert from "node:assert/strict";
import { SeededRandom } from "../../../fakes/random.ts";
import { insideTest } from "../../kit/inside.ts";
import { describeKill, type Kill, planKills } from "../kill/kills.ts";
import { parseCall } from "../kill/node.ts";
import { serveVictim } from "../kill/victim.ts";
import { Victims } from "../kill/victims.ts";
import { sh } from "../kill/volume.ts";
import { DirectoryLife, type Operation, type Place } from "./kill_life.ts";
import { callDirectoryNode, type DirectoryCall, freshDirectoryNode } from "./kill_node.ts";

/** Lives in the drawn part; each has a kill in each of its calls. */
const drawnLives = 3;

async function main(args: readonly string[]): Promise<void> {
  const [size, seed, only = "", address = "", served = "", exported = ""] = args;
  const folder = "/srv/kill";
  const location: Place = {
    ...{ served, exported, address },
    state: `${folder}/state`,
    kubelet: `${folder}/kubelet`,
  };
  await sh(`mkdir -p ${location.state}/mounts ${location.kubelet}/pods`);
  const victims = new Victims<DirectoryCall>(location.state, 2);
  let lives: readonly (readonly Kill<Operation>[])[] = [];
  await insideTest(
    "the steps of every call are counted in a life in which nobody is killed",
    async () => {
      const counted = await new DirectoryLife(location, "count").count(victims);
      const wanted = new RegExp(only);
      lives = planKills(
        counted,
        new SeededRandom(Number(seed)),
        (kill) => wanted.test(describeKill(kill)),
        size === "whole" ? Infinity : drawnLives,
      );
      return [...counted].map(([operation, steps]) => `${operation}: ${steps.length}`).join("; ");
    },
  );
  for (const [index, kills] of lives.entries()) {
    const isWell = await insideTest(
      `killed at boundaries between its steps, a fresh node gets there, life ${index}`,
      async () => {
        const began = performance.now();
        await new DirectoryLife(location, `life-${index}`).withKills(victims, kills);
        return `${kills.length} kills in ${((performance.now() - began) / 1000).toFixed(0)} s`;
      },
    );
    if (!isWell) await clear(location);
  }
  await victims.close();
  await insideTest("nothing is left of all the directories", async () => {
    assert.equal(await sh("grep ' nfs4 ' /proc/self/mountinfo; :"), "");
    assert.equal(await sh(`cd ${folder} && find state/mounts kubelet/*/ -mindepth 1`), "");
    return "no mount, no folder";
  });
}

/** One life that failed must not make the next one fail. */
async function clear({ state, kubelet }: Place): Promise<void> {
  await sh(
    `sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - nfs4 .*/\\1/p' /proc/self/mountinfo | tac |
       while read -r path; do umount -n -c -i --lazy "$path"; done
     rmdir ${state}/mounts/* ${kubelet}/pods/* 2> /dev/null; :`,
  );
}

if (Deno.args[0] === "victim") {
  await serveVictim(() => {
    const service = freshDirectoryNode(Deno.args[1]!);
    return (text) => callDirectoryNode(service, parseCall<DirectoryCall>(text));
  });
} else await main(Deno.args);
