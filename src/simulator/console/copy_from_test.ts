import assert from "node:assert/strict";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  makeRouter,
  typeTo,
} from "../../../tests/support/simulated_router.ts";

const folder = "storage-pool/metal-csi";

/** A console on a router with a disk whose file has content. */
async function withSource(more = 'comment="mine"') {
  const router = makeRouter();
  const type = typeTo(router);
  assert.equal(await type(makeBasePath), "");
  assert.equal(await type(addCommand("a", more)), "");
  router.backing.pretendWritten?.(`${folder}/a.img`, 4096n);
  const disk = async (slot: string) =>
    JSON.parse(await type(jsonCommand(`/disk print detail as-value where slot="${slot}"`)))[0];
  return { router, type, disk };
}

Deno.test("copy-from takes the properties of another disk, and nothing of its file's content", async () => {
  const { router, type, disk } = await withSource('comment="mine" nvme-tcp-server-nqn="nqn.a"');
  const line = `/disk add type=file copy-from=[find slot=a] file-path=/${folder}/b.img slot=b`;
  assert.equal(await type(line), "");
  const [source, copy] = [await disk("a"), await disk("b")];
  const own = { ".id": "*5", slot: "b", "file-path": `/${folder}/b.img`, model: `/${folder}/b.img` };
  assert.deepEqual(copy, { ...source, ...own });
  assert.equal(copy["mount-filesystem"], false);
  assert.equal(router.backing.allocatedBytes(`${folder}/a.img`), 4096n);
  assert.equal(router.backing.allocatedBytes(`${folder}/b.img`), 0n);
});

Deno.test("copy-from without a path makes a second disk on the same file", async () => {
  const { router, type, disk } = await withSource();
  assert.equal(await type("/disk add copy-from=[find slot=a] slot=b"), "");
  assert.equal((await disk("b"))["file-path"], `/${folder}/a.img`);
  assert.deepEqual(
    router.disks.findByPath(`/${folder}/a.img`).map(({ slot }) => slot),
    ["a", "b"],
  );
});

const path = `file-path="/${folder}/b.img"`;
const refusals: readonly (readonly [command: string, refusal: string])[] = [
  [`/disk add copy-from=[find slot=a] ${path}`, "failure: already have such slot"],
  [`/disk add copy-from="x" ${path} slot="b"`, "no such item"],
  [`/disk add copy-from=*FF ${path} slot="b"`, "no such item (4)"],
  ['/disk set "a" copy-from="nvme1"', "expected end of command (line 1 column 15)"],
];

for (const [command, refusal] of refusals) {
  Deno.test(`${command} is refused with ${refusal}, and changes nothing`, async () => {
    const { router, type } = await withSource();
    const before = [router.disks.list(), router.files.list()];
    assert.equal(await type(command), `${refusal}\r\n`);
    assert.deepEqual([router.disks.list(), router.files.list()], before);
  });
}
