import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  addCommand,
  makeBasePath,
  makeRouter,
  typeTo,
  type Typing,
} from "../../../tests/support/simulated_router.ts";
import { Timing } from "../timing.ts";
import { DirectoryBacking } from "../model/directory_backing.ts";
import type { Router } from "../model/router.ts";

const folder = "storage-pool/metal-csi";

async function copying(
  use: (router: Router, type: Typing, clock: FakeClock, backing: string) => Promise<void>,
) {
  const backing = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  const clock = new FakeClock();
  const router = makeRouter({
    clock,
    backing: new DirectoryBacking(backing),
    behaviours: { copyReturns: "at-once", allocation: "full" },
  });
  try {
    router.delays.copyMs = 1000;
    const type = typeTo(router);
    await type(`${makeBasePath}; ${addCommand("a").replace("1073741824", "4096")}; /disk remove "a"`);
    await Deno.writeTextFile(`${backing}/${folder}/a.img`, "content".padEnd(4096));
    assert.equal(await type(`/file copy "${folder}/a.img" name="${folder}/b.img"`), "");
    await use(router, type, clock, `${backing}/${folder}`);
  } finally {
    router.files.abandonCopies();
    await Deno.remove(backing, { recursive: true });
  }
}

Deno.test("a copy whose command returned at once has its full size at once, and its content later", async () => {
  await copying(async (router, type, clock, path) => {
    assert.equal(await type(`:put [/file get "${folder}/b.img" size]`), "4096\r\n");
    assert.match(await Deno.readTextFile(`${path}/b.img`), /^\0{4096}$/);
    await clock.advance(999);
    assert.equal(router.files.isPartial(router.files.find(`${folder}/b.img`)!), true);
    await clock.advance(1);
    assert.match(await Deno.readTextFile(`${path}/b.img`), /^content/);
    assert.equal(router.files.isPartial(router.files.find(`${folder}/b.img`)!), false);
  });
});

Deno.test("a copy becomes complete even when its source is removed and it is renamed meanwhile", async () => {
  await copying(async (_router, type, clock, path) => {
    await type(`/file remove "${folder}/a.img"; /file set "${folder}/b.img" name="${folder}/c.img"`);
    await clock.advance(1000);
    assert.match(await Deno.readTextFile(`${path}/c.img`), /^content/);
    assert.deepEqual(Array.from(Deno.readDirSync(path), ({ name }) => name), ["c.img"]);
  });
});

Deno.test("a copy that is removed meanwhile does not come back", async () => {
  await copying(async (router, type, clock, path) => {
    await type(`/file remove "${folder}/b.img"`);
    await clock.advance(1000);
    assert.equal(router.files.find(`${folder}/b.img`), undefined);
    assert.deepEqual(Array.from(Deno.readDirSync(path), ({ name }) => name), ["a.img"]);
  });
});

Deno.test("an abandoned copy is never complete", async () => {
  await copying(async (router, _type, clock, path) => {
    router.files.abandonCopies();
    await clock.advance(1000);
    assert.match(await Deno.readTextFile(`${path}/b.img`), /^\0{4096}$/);
    assert.equal(router.files.isPartial(router.files.find(`${folder}/b.img`)!), true);
  });
});

Deno.test("a full copy takes a second for each gibibyte, scaled, and a reflink no time", async () => {
  for (const [allocation, ms] of [["full", 8000], ["sparse", 0]] as const) {
    const clock = new FakeClock();
    const router = makeRouter({
      clock,
      behaviours: { allocation },
      timing: new Timing(2, new SeededRandom()),
    });
    const type = typeTo(router);
    await type(`${makeBasePath}; ${addCommand("a").replace("1073741824", "4294967296")}`);
    router.backing.pretendWritten?.(`${folder}/a.img`, 2n << 30n);
    const copied = type(`/file copy "${folder}/a.img" name="${folder}/b.img"`);
    const whole = () => !router.files.isPartial(router.files.find(`${folder}/b.img`)!);
    await clock.advance(Math.max(0, ms - 1));
    assert.equal(whole(), ms === 0);
    await clock.advance(1);
    assert.equal(whole(), true);
    await copied;
  }
});

Deno.test("files found by a part of their path are in the order of all files, including renamed folders with their content", async () => {
  const type = typeTo(makeRouter());
  await type(`${makeBasePath}; /file add name="${folder}/z-1"; /file add name="${folder}/a-1"`);
  await type(`/file add type="directory" name="${folder}/d"; /file add name="${folder}/d/m-1"`);
  const listed = async (part: string) =>
    JSON.parse(
      await type(`:put [:serialize to=json value=[/file print as-value proplist=name where name~"${part}"]]`),
    )
      .map(({ name }: { name: string }) => name);
  const names = ["a-1", "d/m-1", "z-1"].map((name) => `${folder}/${name}`);
  assert.deepEqual(await listed("-1$"), names);
  assert.equal(await type(`/file set "${folder}/d" name="${folder}/y"`), "");
  assert.deepEqual(await listed("-1$"), [names[0], `${folder}/y/m-1`, names[2]]);
  assert.deepEqual(await listed("/d/"), []);
});
