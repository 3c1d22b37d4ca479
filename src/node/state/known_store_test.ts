import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  ext4,
  FakeNode,
  injected,
  nqn,
  publishContext,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { KnownStore } from "./known_store.ts";

const passphrase = "correct horse battery staple";
const knownPath = `/state/known/${volumeId}.json`;

/** A kind of volume, and how often something was made on its device. */
interface Kind {
  readonly capability: Capability;
  readonly encrypted: boolean;
}

const made: Readonly<Record<string, Kind>> = {
  "a file system volume": { capability: ext4, encrypted: false },
  "an encrypted file system volume": { capability: ext4, encrypted: true },
  "an encrypted block volume": { capability: block, encrypted: true },
};

function contextOf({ encrypted }: Kind, change: Record<string, string> = {}): Record<string, string> {
  return publishContext({ ...encrypted ? { encrypted: "true" } : {}, ...change });
}

async function stage(node: FakeNode, kind: Kind, change: Record<string, string> = {}): Promise<void> {
  const { capability, encrypted } = kind;
  await node.stage({
    capability,
    publishContext: contextOf(kind, change),
    volumeContext: encrypted ? { encrypted: "true" } : {},
    secrets: encrypted ? { encryptionPassphrase: passphrase } : {},
  });
}

/** A pod comes, and goes. */
async function use(node: FakeNode, kind: Kind, change: Record<string, string> = {}): Promise<void> {
  await stage(node, kind, change);
  await node.publish({ capability: kind.capability, publishContext: contextOf(kind, change) });
  await node.unpublish();
  await node.unstage();
}

/** How many headers and file systems were made. */
function makings(node: FakeNode): number {
  const headers = node.processes.runs.filter(({ options }) => options.args[0] === "luksFormat");
  return headers.length + node.formats.length;
}

function becomesBlank(node: FakeNode): void {
  node.device.content = "blank";
  delete node.device.luks;
}

/** The volume under another NQN, with a device of its own. */
function inEpoch(node: FakeNode, epoch: string): Record<string, string> {
  const other = nqn.replace(/[^:]+$/, epoch);
  const number = node.devices.size + 5;
  node.devices.set(other, node.newDevice({ path: `/dev/loop${number}`, deviceNumber: `7:${number}` }));
  return { nqn: other, epoch };
}

for (const [what, kind] of Object.entries(made)) {
  Deno.test(`stage() makes nothing on ${what} that was used and comes back blank after its unstage`, async () => {
    const node = new FakeNode();
    await use(node, kind);
    const before = makings(node);
    becomesBlank(node);
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(
        stage(node, kind),
        refusal("precondition", /made here is gone.*find out first.*rds-csi allow-format pvc-1/),
      );
    }
    assert.deepEqual([makings(node), node.device.connected, node.stagingState], [before, false, undefined]);
  });

  Deno.test(`stage() uses ${what} again after its unstage in the same epoch`, async () => {
    const node = new FakeNode();
    await use(node, kind);
    const before = makings(node);
    await use(node, kind);
    assert.equal(makings(node), before);
  });

  Deno.test(`stage() of a later epoch, in which a format is allowed, makes ${what} anew`, async () => {
    const node = new FakeNode();
    await use(node, kind);
    const before = makings(node);
    const later = inEpoch(node, "2-11111111");
    await stage(node, kind, later);
    assert.equal(makings(node), 2 * before);
    assert.equal(node.paths.nodes.has(knownPath), false, "what was known of the earlier epoch is gone");
  });

  Deno.test(`a node that dies at any step of an unstage never makes ${what} again`, async () => {
    const staged = async () => {
      const node = new FakeNode();
      await stage(node, kind);
      await node.publish({ capability: kind.capability, publishContext: contextOf(kind) });
      await node.unpublish();
      return node;
    };
    await breakEachStep(staged, (node) => node.unstage(), async (node, step) => {
      const before = makings(node);
      await node.unstage();
      becomesBlank(node);
      await assert.rejects(stage(node, kind), refusal("precondition", /made here is gone/), step);
      assert.equal(makings(node), before, step);
    }, "crashes");
  });
}

Deno.test("stage() makes a volume of the same name that was deleted and created anew", async () => {
  const node = new FakeNode();
  const kind = { capability: ext4, encrypted: false };
  await use(node, kind, inEpoch(node, "3-11111111"));
  const anew = inEpoch(node, "1-22222222");
  await use(node, kind, anew);
  assert.equal(node.formats.length, 2);
  node.devices.get(anew["nqn"]!)!.content = "blank";
  await assert.rejects(stage(node, kind, anew), refusal("precondition", /is gone/));
});

Deno.test("stage() makes no file system on a blank device that was published raw in the same epoch", async () => {
  const node = new FakeNode();
  await use(node, { capability: block, encrypted: false });
  await assert.rejects(node.stage(), refusal("precondition", /used here before/));
  assert.equal(node.formats.length, 0);
});

Deno.test("stage() makes no file system inside an encrypted volume that was published raw in the same epoch", async () => {
  const node = new FakeNode();
  await use(node, { capability: block, encrypted: true });
  await assert.rejects(
    stage(node, { capability: ext4, encrypted: true }),
    refusal("precondition", /used here before/),
  );
  assert.equal(node.formats.length, 0);
});

Deno.test("stage() of an epoch that is over ends nothing of what is known of the present one", async () => {
  const node = new FakeNode();
  const kind = { capability: ext4, encrypted: false };
  await use(node, kind);
  const over = inEpoch(node, "0-11111111");
  node.devices.get(over["nqn"]!)!.exported = false;
  await assert.rejects(stage(node, kind, over), refusal("unavailable"));
  becomesBlank(node);
  await assert.rejects(stage(node, kind), refusal("precondition", /is gone/));
});

Deno.test("a stage of another epoch keeps what the record of the present one forbids, until it has succeeded", async () => {
  const node = new FakeNode();
  const kind = { capability: ext4, encrypted: false };
  await stage(node, kind);
  const over = inEpoch(node, "0-11111111");
  node.devices.get(over["nqn"]!)!.exported = false;
  await assert.rejects(stage(node, kind, over), refusal("unavailable"));
  becomesBlank(node);
  await assert.rejects(stage(node, kind), refusal("precondition", /is gone/));
});

Deno.test("stage() that fails after its mount leaves what forbids a format", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  node.before = (operation) => {
    if (operation === "grow") throw injected;
  };
  await assert.rejects(node.stage(), (error) => error === injected);
  node.before = () => {};
  assert.equal(node.stagingState, undefined);
  becomesBlank(node);
  await assert.rejects(node.stage(), refusal("precondition", /used here before/));
});

Deno.test("unstage() in an epoch whose context forbids a format leaves no file", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await use(node, { capability: ext4, encrypted: false }, { mayFormat: "false" });
  assert.deepEqual([...node.paths.nodes.keys()].filter((path) => path.startsWith("/state/known")), []);
});

Deno.test("stage() refuses while what is known of the volume is damaged and a format would be allowed", async () => {
  const node = new FakeNode();
  await use(node, { capability: ext4, encrypted: false });
  node.paths.nodes.set(knownPath, { kind: "file", text: "{" });
  await assert.rejects(node.stage(), refusal("precondition", new RegExp(`damaged.*file=${knownPath}`)));
  await node.stage({}, { mayFormat: "false" });
  await node.publish({ targetPath });
});

Deno.test("beyond the limit of files those that were written first go, and a line says so", async () => {
  const node = new FakeNode();
  const store = new KnownStore({ ...node.deps, ...node.deps.settings }, { maxFiles: 4, spareFiles: 2 });
  const content = { header: "none", filesystem: "done", rootOpened: true, used: true } as const;
  const kept = { epoch: "1-0a0b0c0d", content };
  for (let number = 1; number <= 4; number++) {
    await store.keep({ volumeId: `pvc-${number}`, ...kept });
    await node.clock.advance(1000);
  }
  assert.deepEqual(node.reported, []);
  node.paths.nodes.set("/state/known/pvc-4.json", { kind: "file", text: "{" });
  await store.keep({ volumeId: "pvc-9", ...kept });
  const left = (await node.paths.list("/state/known")).toSorted();
  assert.deepEqual(left, ["pvc-3.json", "pvc-9.json"]);
  assert.match(node.reported.join(), /forgot.*volumes/);
  assert.equal((await store.find("pvc-9"))?.content.used, true);
});
