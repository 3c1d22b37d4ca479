import { unsettled } from "../../../tests/fakes/refusal.ts";
// Headers that somebody else has changed, and mappings that do not encrypt: who writes to the router's disks chooses them.
import assert from "node:assert/strict";
import {
  call,
  FakeNode,
  publishContext,
  sizeBytes,
  stagingPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { headOf, type Metadata, ownMetadata, saltOf } from "../../../tests/fakes/luks_header.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";

const mapping = "rds-csi-pvc-1";
const header = 16n << 20n;
const passphrase = "correct horse battery staple";
const encrypted = publishContext({ encrypted: "true" });
const ownTable = `aes-xts-plain64 ${"0".repeat(128)} 0 7:3 32768`;
const plainTable = "cipher_null-ecb - 0 7:3 32768";

async function stage(node: FakeNode, mayFormat = true): Promise<void> {
  const [volumeContext, secrets] = [{ encrypted: "true" }, { encryptionPassphrase: passphrase }];
  const publishContext = { ...encrypted, mayFormat: String(mayFormat) };
  await node.service.stage({ ...node.stageRequest(), volumeContext, secrets, publishContext }, call());
}

/** The commands of cryptsetup that were run, without their options. */
function commands(node: FakeNode): string[] {
  return node.processes.runs.filter(({ tool }) => tool === "cryptsetup").map(({ options }) =>
    options.args[0]!
  ).filter((command) => command !== "--version");
}

function isOpen(node: FakeNode): boolean {
  return node.mapper.maps.has(mapping);
}

Deno.test("a header that asks for another cipher, or for more memory than this driver's, is refused before it is opened", async () => {
  const altered = {
    "segments.0.encryption": (metadata: Metadata) => metadata["segments"][0].encryption = "cipher_null-ecb",
    "keyslots.0.kdf.memory": (metadata: Metadata) => metadata["keyslots"][0].kdf.memory = 2 * 1024 * 1024,
  };
  for (const [field, alter] of Object.entries(altered)) {
    const node = new FakeNode();
    await stage(node);
    await node.unstage();
    const metadata = ownMetadata({ "0": saltOf(passphrase) });
    alter(metadata);
    node.device.luks!.answers = () => headOf(metadata);
    const ran = commands(node).length;
    await rejectsWith(stage(node, false), "precondition", new RegExp(`field=${field} `));
    assert.deepEqual([commands(node).length, isOpen(node), node.device.connected], [ran, false, false]);
    assert.equal(node.device.luks!.inner.content, "ext4");
  }
});

Deno.test("a target that answers a second read of the header otherwise has its first answer opened", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  const evil = ownMetadata({ "0": saltOf(passphrase) });
  evil["segments"][0].encryption = "cipher_null-ecb";
  let reads = 0;
  node.device.luks!.answers = (head) => reads++ === 0 ? head : headOf(evil);
  const opened: string[] = [];
  const { script } = node.processes;
  node.processes.script = (run) => {
    const { args } = run.options;
    if (run.tool === "cryptsetup" && args[0] === "open") {
      const copy = node.files.memory.get(args[args.indexOf("--header") + 1]!)!;
      opened.push(new TextDecoder().decode(copy.subarray(4096, 16_384)));
    }
    return script(run);
  };
  await stage(node, false);
  assert.deepEqual([opened.length, reads], [1, 1]);
  assert.match(opened[0]!, /"encryption":"aes-xts-plain64","sector_size"/);
  assert.equal(node.files.memory.size, 0);
});

Deno.test("a mapping that does not encrypt is closed and opened anew by a stage, and stays while a pod has it", async () => {
  const node = new FakeNode();
  await stage(node);
  const { table } = node.mapper.maps.get(mapping)!;
  const plain = () => node.mapper.maps.get(mapping)!.table!.crypt = plainTable;
  plain();
  await stage(node);
  assert.deepEqual(node.mapper.maps.get(mapping)!.table, table && { ...table, crypt: ownTable });
  assert.deepEqual(commands(node), ["luksFormat", "open", "open"]);
  await node.publish({ publishContext: encrypted });
  plain();
  await assert.rejects(stage(node), unsettled("in-use", /is (mounted|bound) at/));
  const range = { requiredBytes: sizeBytes * 2n - header, limitBytes: 0n };
  node.device.sizeBytes = sizeBytes * 2n;
  const growing = node.service.expand({ volumeId, volumePath: stagingPath, range }, call());
  await rejectsWith(growing, "identity-mismatch", /does not encrypt as this driver does/);
  assert.ok(!commands(node).includes("resize"));
  const { problems } = await node.service.volumeHealth(volumeId, call());
  assert.match(problems.map(({ message }) => message).join(), /does not encrypt as this driver does/);
});

Deno.test("a mapping that turns out not to encrypt is closed at once", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  node.after = (operation) => {
    if (operation !== "cryptsetup open") return;
    node.mapper.maps.get(mapping)!.table!.crypt = plainTable;
  };
  await rejectsWith(stage(node, false), "identity-mismatch", /table=0 [0-9]+ crypt cipher_null-ecb /);
  assert.deepEqual([isOpen(node), node.device.connected, node.table], [false, false, []]);
});

Deno.test("a mapping that does not encrypt stays while something else is mounted over its file system", async () => {
  const node = new FakeNode();
  await stage(node);
  node.mapper.maps.get(mapping)!.table!.crypt = plainTable;
  node.addMount("8:1", stagingPath, { source: "/dev/sda1" });
  await assert.rejects(stage(node), unsettled("in-use", /\/dev\/sda1 is mounted at/));
  assert.deepEqual(node.table.map(({ deviceNumber }) => deviceNumber), ["253:40", "8:1"]);
  assert.ok(isOpen(node));
});
