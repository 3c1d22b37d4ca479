// A node that asks for no device layer gets none: every step is the same as on a node without a device mapper.
import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  FakeNode,
  injected,
  nqn,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { NodeService } from "../node_service.ts";
import { LayerWatch } from "./layer_watch.ts";

/** What must be the same with and without a device mapper. */
interface Trace {
  readonly steps: readonly string[];
  readonly outcomes: readonly string[];
  readonly stateFiles: readonly (string | undefined)[];
  readonly reported: readonly string[];
  readonly events: readonly string[];
}

/** What happens to a volume before its calls are repeated; undefined when nothing does. */
type Trouble = (node: FakeNode) => void;

const later = nqn.replace("1-0a0b0c0d", "2-0a0b0c0d");
const troubles: Readonly<Record<string, Trouble>> = {
  "nothing": () => {},
  "the kernel drops the device": (node) => {
    Object.assign(node.device, { path: "/dev/loop9", deviceNumber: "7:9", uniqueId: "b".repeat(32) });
    node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: "7:9" });
  },
  "the kernel gives the connection up": (node) => void (node.device.connected = false),
  "another node has it in a later epoch": (node) => {
    node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
    node.offered = () => [later];
  },
};

/**
 * Takes a volume through its whole life, with a failure at one step or at none. Failed calls are repeated, as a kubelet
 * does.
 */
async function live(
  hasMapper: boolean,
  capability: Capability,
  trouble: Trouble,
  breakAt = Infinity,
): Promise<Trace> {
  const node = new FakeNode();
  node.device.uniqueId = "a".repeat(32);
  const deps = { ...node.deps, settings: { ...node.deps.settings, deviceLayer: "none" as const } };
  const service = new NodeService(hasMapper ? deps : { ...deps, maps: undefined });
  node.before = (_, count) => {
    if (count === breakAt) throw injected;
  };
  const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
  const publish = {
    ...node.stageRequest({ capability }),
    targetPath,
    readOnly: false,
  };
  const calls: readonly (() => Promise<unknown>)[] = [
    () => service.stage(node.stageRequest({ capability }), call()),
    () => service.publish(publish, call()),
    () => {
      node.device.sizeBytes = sizeBytes * 2n;
      return service.expand({ volumeId, volumePath: targetPath, range }, call());
    },
    () => {
      trouble(node);
      return service.volumeHealth(volumeId, call());
    },
    () => service.publish(publish, call()),
    () => service.unpublish({ volumeId, targetPath }, call()),
    () => service.publish(publish, call()),
    () => service.stage(node.stageRequest({ capability }, { mayFormat: "false" }), call()),
    () => service.publish(publish, call()),
    () => service.stats(volumeId, targetPath, call()),
    () => service.unpublish({ volumeId, targetPath }, call()),
    () => service.unstage({ volumeId, stagingPath }, call()),
  ];
  const [outcomes, stateFiles]: [string[], (string | undefined)[]] = [[], []];
  for (const each of calls) {
    for (let attempt = 0; attempt < 2; attempt++) {
      const outcome = await each().then(
        (value) => JSON.stringify(value, (_, part) => typeof part === "bigint" ? String(part) : part) ?? "OK",
        (error) => String(error),
      );
      outcomes.push(outcome);
      stateFiles.push(node.paths.nodes.get(`/state/volumes/${volumeId}.json`)?.text);
      if (!outcome.includes(injected.message)) break;
    }
  }
  assert.equal(node.mapperRuns, 0, "no command of the device mapper is run");
  return {
    steps: node.operations,
    outcomes,
    stateFiles,
    reported: node.reported,
    events: node.events.reported,
  };
}

for (const [name, capability] of Object.entries({ ext4, block })) {
  for (const [what, trouble] of Object.entries(troubles)) {
    Deno.test(`deviceLayer none takes every step as without a device mapper: ${name}, ${what}`, async () => {
      const whole = await live(false, capability, trouble);
      assert.ok(whole.steps.length > 10 && whole.outcomes[0] === "OK", whole.outcomes.join("\n"));
      assert.deepEqual(await live(true, capability, trouble), whole);
      for (let at = 1; at <= whole.steps.length; at++) {
        const [without, withMapper] = [
          await live(false, capability, trouble, at),
          await live(true, capability, trouble, at),
        ];
        assert.deepEqual(withMapper, without, whole.steps[at - 1]);
      }
      for (const text of whole.stateFiles) assert.doesNotMatch(text ?? "", /layer/);
    });
  }
}

Deno.test("where no volume has a map, a check of the maps reads nothing else", async () => {
  const node = new FakeNode();
  await node.stage();
  node.mapper.maps.set("vg-x", { minor: 10, uuid: "LVM-x" });
  node.mapper.show();
  node.operations.length = 0;
  let asked = 0;
  const { connector } = node.deps;
  const counted = {
    ...connector,
    live: (context: Parameters<typeof connector.live>[0]) => {
      asked++;
      return connector.live(context);
    },
  };
  const watch = new LayerWatch({
    deps: { ...node.deps, connector: counted },
    fencing: node.service.fencing,
    lock: { tryTake: () => assert.fail("a lock is taken") },
  });
  await watch.check();
  assert.deepEqual([asked, node.mapperRuns, node.operations.length], [0, 0, 0]);
});
