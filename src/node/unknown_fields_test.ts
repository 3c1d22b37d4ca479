// A newer driver may have been here, and may come back: what it knows of a volume's bytes outlasts all that this one does.
import assert from "node:assert/strict";
import { block, FakeNode, nqn, volumeId } from "../../tests/fakes/node_deps.ts";

const statePath = `/state/volumes/${volumeId}.json`;
const knownPath = `/state/known/${volumeId}.json`;

type Fields = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

function read(node: FakeNode, path: string): Fields | undefined {
  const text = node.paths.nodes.get(path)?.text;
  return text === undefined ? undefined : JSON.parse(text);
}

/** A node with a volume whose state a newer driver has written. */
async function stagedByNewer(): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage();
  const { volumeId, version, ...parts } = read(node, statePath)!;
  const later = Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, { ...part, later: name }]),
  );
  const text = JSON.stringify({ version, volumeId, ...later, later: "all" });
  node.paths.nodes.set(statePath, { kind: "file", text });
  return node;
}

Deno.test("what this driver does not know stays in a state file as long as the volume is wanted in the same way", async () => {
  const node = await stagedByNewer();
  const acts: readonly (() => Promise<unknown>)[] = [
    () => node.stage(),
    () => node.publish(),
    () => node.unpublish(),
    () => {
      node.table = [];
      node.devices.get(nqn)!.connected = false;
      return node.stage({ volumeContext: { deviceLayer: "multipath", ctrlLossTmo: "60" } });
    },
  ];
  for (const act of acts) {
    await act();
    const { later, intent, content, here } = read(node, statePath)!;
    const found = [later, intent!.later, content!.later, here!.later];
    assert.deepEqual(found, ["all", "intent", "content", "here"], String(act));
  }
});

Deno.test("what this driver does not know of a volume's bytes outlasts its unstage, and every change of how it is used", async () => {
  const node = await stagedByNewer();
  const known = () => (read(node, statePath) ?? read(node, knownPath))?.content?.later;
  await node.unstage();
  assert.equal(known(), "content", "in known/");
  await node.stage({ mountFlags: ["noatime"] });
  assert.equal(known(), "content", "remembered");
  await node.stage({ mountFlags: [] });
  assert.equal(known(), "content", "with other options");
  node.device.connected = false;
  node.table = [];
  await node.stage({ capability: block });
  assert.equal(known(), "content", "as a raw device");
  await node.unstage();
  await node.stage({ capability: block });
  assert.equal(known(), "content", "as a raw device again");
});
