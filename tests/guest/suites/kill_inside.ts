// Takes volumes through their lives while the node is killed: `whole|drawn SEED ONLY PARAMETERS`, or `victim STATE` for the
// process that is killed. PARAMETERS are those of the StorageClass, as JSON.

import assert from "node:assert/strict";
import { SeededRandom } from "../../fakes/random.ts";
import { NvmetExporter } from "../../../src/simulator/model/nvmet_exporter.ts";
import { describeKill, type Kill, planKills } from "./kill/kills.ts";
import { Life, type LifeStory, type Operation, operations } from "./kill/life.ts";
import { callNode, freshNode, type NodeCall, parseCall } from "./kill/node.ts";
import { type Kind, type Place, sh, Volume } from "./kill/volume.ts";
import type { Step } from "./kill/steps.ts";
import { serveVictim } from "./kill/victim.ts";
import { Victims } from "./kill/victims.ts";
import { insideTest } from "../kit/inside.ts";

const kinds: readonly Kind[] = ["ext4", "xfs", "block"];
/** Lives of each kind in the drawn part. */
const drawnLives = 2;
/**
 * Longest life, in seconds: one of an encrypted volume takes two to four minutes, and more where other guests run. One
 * that takes longer has met something that hangs.
 */
const lifeSeconds = 900;
/** Lives at a time: they wait for the kernel now and then. */
const parallel = 2;

type Counted = ReadonlyMap<Operation, readonly Step[]>;

async function main([size, seed, pattern = "", parameters = "{}"]: readonly string[]): Promise<void> {
  const only = new RegExp(pattern);
  const folder = "/srv/kill";
  for (const name of ["images", "state", "state/volumes", "state/known", "kubelet/staging", "kubelet/pods"]) {
    Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
  }
  const location: Place = {
    images: `${folder}/images`,
    state: `${folder}/state`,
    kubelet: `${folder}/kubelet`,
    exporter: new NvmetExporter({ folder: "/sys/kernel/config/nvmet", address: "127.0.0.1" }),
    parameters: JSON.parse(parameters),
  };
  const victims = new Victims<NodeCall>(location.state, parallel + 1);
  const random = new SeededRandom(Number(seed));
  for (const kind of kinds) {
    const wanted = (kill: Kill<Operation>) => only.test(`${kind}: ${describeKill(kill)}`);
    let counted: Counted | undefined;
    await insideTest(
      `${kind}: the steps of every call are counted in a life in which nobody is killed`,
      async () => {
        counted = await Life.count(new Volume(location, `pvc-${kind}-count`, kind), location.state, victims);
        return operations.map((operation) => `${operation} ${counted!.get(operation)!.length}`).join("; ");
      },
    );
    if (counted === undefined) continue;
    const lives = planKills(counted, random, wanted, size === "whole" ? Infinity : drawnLives);
    if (lives.length === 0) continue;
    await insideTest(
      `${kind}: killed at boundaries between its steps, a fresh node gets there, and data is as it was written`,
      () =>
        live(lives, (index) => new Volume(location, `pvc-${kind}-${index}`, kind), location.state, victims),
    );
  }
  await victims.close();
  await insideTest("nothing is left of all the volumes", async () => {
    const left = await sh(
      `grep ' ${folder}/' /proc/self/mountinfo; ls ${location.state}/volumes ${location.images} ${location.kubelet}/*/; ` +
        "cat /sys/class/nvme/*/subsysnqn; dmsetup ls | grep -v '^No devices found'; :",
    );
    assert.equal(left.replaceAll(/^.*:$|\n/gm, "").trim(), "");
    return "no mount, map, connection, state file or folder";
  });
  await location.exporter.close();
}

/** Lives them all, and answers what they came to; throws with everything that went wrong. */
async function live(
  lives: readonly (readonly Kill<Operation>[])[],
  newVolume: (index: number) => Volume,
  statePath: string,
  victims: Victims<NodeCall>,
): Promise<string> {
  const stories: LifeStory[] = [];
  const failures: string[] = [];
  const queue = [...lives.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, kills] = next;
      try {
        stories.push(await inTime(Life.withKills(newVolume(index), statePath, victims, kills)));
        note(`life ${index} of ${lives.length} ended well`);
      } catch (error) {
        const killed = kills.map((kill) => `\n  ${describeKill(kill)}`).join("");
        failures.push(
          `life ${index}, in which the node was to be killed at${killed}\n${Deno.inspect(error)}`,
        );
        note(failures.at(-1)!);
      }
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: parallel }, worker));
  assert.deepEqual(failures, []);
  return summary(stories, (performance.now() - started) / 1000);
}

/** What comes of a life; throws with what hangs in the kernel when that takes too long. */
async function inTime<T>(life: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const report = (what: string) => reject(new Error(`it takes longer than ${lifeSeconds} s:\n${what}`));
    timer = setTimeout(() => hanging().then(report, (error) => report(String(error))), lifeSeconds * 1000);
  });
  try {
    return await Promise.race([life, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Processes that wait in the kernel, and where. */
async function hanging(): Promise<string> {
  return await sh(
    `for task in /proc/[0-9]*/task/[0-9]*; do
       grep -q '^State:.D' $task/status 2>/dev/null && { tr '\\0' ' ' < $task/cmdline; echo; cat $task/stack; }
     done; dmsetup table; dmsetup status; dmsetup info -c; cat /sys/class/nvme/*/subsysnqn /sys/class/nvme/*/state 2>/dev/null; dmesg | tail -n 20; :`,
  );
}

/** For whoever watches a long run from the host. */
function note(text: string): void {
  Deno.writeTextFileSync("/host/kill.log", `${text}\n`, { append: true });
}

function summary(stories: readonly LifeStory[], seconds: number): string {
  const refusals = new Map<string, number>();
  for (const [kind, count] of stories.flatMap((story) => [...story.refusals])) {
    refusals.set(kind, (refusals.get(kind) ?? 0) + count);
  }
  const kills = stories.reduce((sum, story) => sum + story.kills, 0);
  const slowest = Math.max(...stories.map((story) => story.slowestMs)) / 1000;
  return `${kills} kills in ${stories.length} lives, ${
    (seconds / kills).toFixed(1)
  } s each; slowest way back ` +
    `${slowest.toFixed(1)} s; ` +
    `refused before it went through: ${
      [...refusals].map(([kind, count]) => `${kind} ${count}`).join(", ") || "never"
    }`;
}

if (Deno.args[0] === "victim") {
  await serveVictim(() => {
    const node = freshNode(Deno.args[1]!);
    return (text) => callNode(node, parseCall(text));
  });
} else await main(Deno.args);
