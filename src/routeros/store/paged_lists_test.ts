import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { divideFiles, divideSlots, listDisksInParts, listFilesInParts, type Part } from "./paged_lists.ts";

/** A router that shows at most `limit` items at once. */
function limited(items: readonly string[], limit: number, rowOf: (item: string) => object) {
  const patterns: string[] = [];
  return {
    patterns,
    ask: (pattern: string, ending = "") => {
      patterns.push(pattern + ending);
      const found = items.filter((item) => new RegExp(pattern).test(item) && new RegExp(ending).test(item));
      return Promise.resolve(found.length > limit ? undefined : JSON.stringify(found.map(rowOf)));
    },
  };
}

/** The parts that are left when each is divided once more, as far as that goes. */
function divided(parts: readonly Part[]): RegExp[] {
  return parts.flatMap((part) => part.smaller?.() ?? [part]).map(({ pattern }) => new RegExp(pattern));
}

const random = (i: number) => (i * 2654435761 % 2 ** 32).toString(16).padStart(8, "0");

const diskRow = (slot: string) => ({
  slot,
  type: "file",
  "file-path": `/pool/${slot}`,
  size: 1,
  "nvme-tcp-export": false,
});
const oddSlots = ["a", "0", "f0", "Z", "z0", "my disk", "x.y", "pvc-", "-0", "é", "É0", "00", "000"];
const slots = [...Array.from({ length: 2000 }, (_, i) => `pvc-${random(i)}`), ...oddSlots];

const hash = ".1a2b3c4d";
const fileRow = (name: string) => ({ name, type: "file", size: 1 });
const volumes = Array.from({ length: 1000 }, (_, i) => [
  `/pool/csi/pvc-${random(i)}${hash}`,
  `/pool/csi/pvc-${random(i)}${hash}/disk.img`,
]).flat();
const snapshots = Array.from({ length: 1000 }, (_, i) => {
  const time = (1_790_000_000 + i * 61).toString(36);
  return `/pool/csi/snap-${random(i)}.pvc-${random(i % 7)}.${time}.n${hash}.img`;
});
const oddPaths = ["/pool/snap-", "/pool/snap-Z", "/pool/snap-a/snap-b", `/p/a b${hash}`, `/p/${hash}.img`];
const paths = [...volumes, ...snapshots, ...oddPaths];
const names = paths.map((path) => path.slice(1));

Deno.test("divideSlots() puts every slot into exactly one part, however small the parts", () => {
  for (const forms of [divideSlots().map(({ pattern }) => new RegExp(pattern)), divided(divideSlots())]) {
    for (const slot of slots) assert.equal(forms.filter((form) => form.test(slot)).length, 1, slot);
  }
});

Deno.test("listDisksInParts() lists every disk once, ordered, in as many parts as it takes", async () => {
  const wide = limited(slots, 200, diskRow);
  const volumes = await listDisksInParts(wide.ask);
  assert.deepEqual(volumes.map(({ id }) => id), slots.toSorted());
  assert.ok(wide.patterns.length < 18, `${wide.patterns.length} parts`);
  const narrow = limited(slots, 20, diskRow);
  assert.equal((await listDisksInParts(narrow.ask)).length, slots.length);
  assert.ok(narrow.patterns.length < 400, `${narrow.patterns.length} parts`);
});

for (const text of ["/snap-", hash]) {
  const expected = paths.filter((path) => path.includes(text)).toSorted();

  Deno.test(`listFilesInParts() lists every file with ${text} once, ordered, in as many parts as it takes`, async () => {
    const wide = limited(names, 400, fileRow);
    assert.deepEqual((await listFilesInParts(text, wide.ask)).map(({ path }) => path), expected);
    assert.ok(wide.patterns.length < 250, `${wide.patterns.length} parts`);
    const narrow = limited(names, 20, fileRow);
    assert.equal((await listFilesInParts(text, narrow.ask)).length, expected.length);
    assert.ok(narrow.patterns.length < 2000, `${narrow.patterns.length} parts`);
  });

  Deno.test(`divideFiles() leaves no file with ${text} out, however small the parts`, () => {
    const forms = divided(divideFiles(text));
    for (const path of expected) assert.ok(forms.some((form) => form.test(path.slice(1))), path);
  });
}

Deno.test("listFilesInParts() divides what a whole folder holds by the ends of its names", async () => {
  const text = "names-of-1a2b3c4d";
  const folder = `pool/csi/${text}`;
  const ids = Array.from({ length: 2000 }, (_, i) => i % 7 === 0 ? `films-${i}` : `pvc-${random(i)}`);
  const plates = [folder, ...ids.map((id) => `${folder}/default_data-${id}_rds-ext4_${id}`)];
  const odd = [`${folder}/a person's folder`, `other/${text}`, `${folder}/x_y__a~`, `${folder}/${text}/z`];
  const all = [...plates, ...odd];
  for (const [limit, most] of [[400, 150], [20, 1_500]] as const) {
    const router = limited([...names, ...all], limit, fileRow);
    const found = await listFilesInParts(text, router.ask);
    assert.deepEqual(found.map(({ path }) => path), all.map((path) => `/${path}`).toSorted());
    assert.ok(router.patterns.length < most, `${router.patterns.length} parts`);
  }
});

const lists: Readonly<
  Record<string, (ask: (pattern: string) => Promise<string | undefined>) => Promise<unknown>>
> = {
  listDisksInParts: (ask) => listDisksInParts(ask),
  listFilesInParts: (ask) => listFilesInParts("/snap-", ask),
};

for (const [name, list] of Object.entries(lists)) {
  Deno.test(`${name}() throws unavailable soon when every answer comes cut`, async () => {
    let asked = 0;
    const all = list(() => {
      asked++;
      return Promise.resolve(undefined);
    });
    await assert.rejects(all, refusal("unavailable"));
    assert.ok(asked < 30, `${asked} commands`);
  });
}

Deno.test("listDisksInParts() stops asking when one part fails", async () => {
  let asked = 0;
  const all = listDisksInParts(() => {
    if (++asked === 2) return Promise.reject(new VolumeError("unavailable", "gone"));
    return Promise.resolve("[]");
  });
  await assert.rejects(all, /gone/);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(asked <= 6, `${asked} commands`);
});

Deno.test("listDisksInParts() throws unavailable when a part shows a disk of another part", async () => {
  const wrong = () => Promise.resolve(JSON.stringify([diskRow("s1")]));
  await assert.rejects(listDisksInParts(wrong), refusal("unavailable", /s1/));
});

Deno.test("listFilesInParts() drops what only matches the router's regular expression", async () => {
  const loose = () => Promise.resolve(JSON.stringify([fileRow("pool/snapX")]));
  assert.deepEqual(await listFilesInParts("/snap-", loose), []);
});
