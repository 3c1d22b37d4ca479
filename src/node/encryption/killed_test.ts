// Kills the node service (kill -9) between any two steps on an encrypted volume. The next process succeeds, and a header
// that a pod's data is behind is never written again.
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  call,
  ext4,
  FakeNode,
  publishContext,
  sizeBytes,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";

const secrets = { encryptionPassphrase: "correct horse battery staple" };
const next = "another passphrase, as long as it";
const first = publishContext({ encrypted: "true" });
const later = { ...first, mayFormat: "false" };

function stage(
  node: FakeNode,
  capability: Capability,
  publishContext: Record<string, string> = first,
  given: Record<string, string> = secrets,
): Promise<void> {
  const volumeContext = { encrypted: "true" };
  return node.service.stage(
    { ...node.stageRequest(), capability, publishContext, volumeContext, secrets: given },
    call(),
  );
}

/** The kernel closes what the killed process held open. */
function afterKill(node: FakeNode): void {
  node.held.clear();
  node.showDevices();
}

async function endsWell(node: FakeNode, step: string): Promise<void> {
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([node.mapper.maps.size, node.table, node.device.connected], [0, [], false], step);
  assert.equal(node.stagingState, undefined, step);
}

const capabilities = { ext4, block };
const content = { ext4: "ext4", block: "blank" } as const;

for (const kind of ["ext4", "block"] as const) {
  const capability = capabilities[kind];

  Deno.test(`a first stage that is killed is completed by the next one: ${kind}`, async () => {
    await breakEachStep(
      () => Promise.resolve(new FakeNode()),
      (node) => stage(node, capability),
      async (node, step) => {
        afterKill(node);
        await stage(node, capability);
        assert.equal(node.device.luks!.inner.content, content[kind], step);
        assert.equal(node.stagingState!.header, "done", step);
        await endsWell(node, step);
      },
      "crashes",
    );
  });

  Deno.test(`a first stage that fails leaves nothing open, and is completed by the next one: ${kind}`, async () => {
    await breakEachStep(
      () => Promise.resolve(new FakeNode()),
      (node) => stage(node, capability),
      async (node, step) => {
        assert.deepEqual([node.mapper.maps.size, node.device.connected], [0, false], step);
        await stage(node, capability);
        assert.equal(node.device.luks!.inner.content, content[kind], step);
        await endsWell(node, step);
      },
    );
  });

  Deno.test(`a first stage that is killed, and unstaged, is completed by the next one: ${kind}`, async () => {
    await breakEachStep(
      () => Promise.resolve(new FakeNode()),
      (node) => stage(node, capability),
      async (node, step) => {
        afterKill(node);
        await node.unstage();
        assert.deepEqual([node.mapper.maps.size, node.device.connected], [0, false], step);
        await stage(node, capability);
        assert.equal(node.device.luks!.inner.content, content[kind], step);
        await endsWell(node, step);
      },
      "crashes",
    );
  });

  const used = async (): Promise<FakeNode> => {
    const node = new FakeNode();
    await stage(node, capability);
    await node.publish({ capability, publishContext: first });
    await node.unpublish();
    // What only a pod has written.
    if (kind === "block") node.device.luks!.inner.content = "garbage";
    return node;
  };

  /** Nothing but the first stage has written a header or a file system. */
  const untouched = (node: FakeNode, step: string) => {
    const formats = node.processes.runs.filter(({ options }) => options.args[0] === "luksFormat");
    assert.deepEqual([formats.length, node.formats.length], [1, kind === "ext4" ? 1 : 0], step);
    assert.equal(node.device.luks!.inner.content, kind === "ext4" ? "ext4" : "garbage", step);
  };

  Deno.test(`a later stage that is killed is completed by the next one, and formats nothing: ${kind}`, async () => {
    const unstaged = async () => {
      const node = await used();
      await node.unstage();
      return node;
    };
    // The context of the first epoch again: even then the header that is there decides.
    for (const context of [later, first]) {
      await breakEachStep(unstaged, (node) => stage(node, capability, context), async (node, step) => {
        afterKill(node);
        await stage(node, capability, context);
        untouched(node, step);
        await endsWell(node, step);
      }, "crashes");
    }
  });

  Deno.test(`an unstage that is killed is completed by the next one: ${kind}`, async () => {
    await breakEachStep(used, (node) => node.unstage(), async (node, step) => {
      afterKill(node);
      await node.unstage();
      untouched(node, step);
      await endsWell(node, step);
    }, "crashes");
  });

  Deno.test(`a change of the passphrase that is killed is completed by the next stage: ${kind}`, async () => {
    const unstaged = async () => {
      const node = await used();
      await node.unstage();
      return node;
    };
    const both = { ...secrets, encryptionPassphraseNew: next };
    await breakEachStep(unstaged, (node) => stage(node, capability, later, both), async (node, step) => {
      afterKill(node);
      assert.ok(node.device.luks!.keys.length > 0, step);
      await stage(node, capability, later, both);
      await node.unstage();
      await stage(node, capability, later, both);
      assert.deepEqual(node.device.luks!.keys, [next], step);
      untouched(node, step);
      await endsWell(node, step);
    }, "crashes");
  });

  Deno.test(`an expand that is killed is completed by the next one: ${kind}`, async () => {
    const range = { requiredBytes: 2n * sizeBytes - (16n << 20n), limitBytes: 0n };
    const expand = (node: FakeNode) =>
      node.service.expand({ volumeId, volumePath: targetPath, range }, call());
    const grown = async () => {
      const node = new FakeNode();
      await stage(node, capability);
      await node.publish({ capability, publishContext: first });
      node.device.sizeBytes = 2n * sizeBytes;
      return node;
    };
    await breakEachStep(grown, expand, async (node, step) => {
      afterKill(node);
      assert.equal(await expand(node), range.requiredBytes, step);
      await endsWell(node, step);
    }, "crashes");
  });
}
