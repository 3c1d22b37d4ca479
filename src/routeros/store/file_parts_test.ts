import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { divideFiles, listFilesInParts } from "./file_parts.ts";
import type { Part } from "./in_parts.ts";

/** A router that shows at most `limit` files at once. */
function limited(paths: readonly string[], limit: number) {
  const patterns: string[] = [];
  return {
    patterns,
    ask: (pattern: string) => {
      patterns.push(pattern);
      const found = paths.map((path) => path.slice(1)).filter((name) => new RegExp(pattern).test(name));
      return Promise.resolve(
        found.length > limit
          ? undefined
          : JSON.stringify(found.map((name) => ({ name, type: "file", size: 1 }))),
      );
    },
  };
}

const random = (i: number) => (i * 2654435761 % 2 ** 32).toString(16).padStart(8, "0");
const hash = ".1a2b3c4d";
const volumes = Array.from({ length: 1000 }, (_, i) => [
  `/pool/csi/pvc-${random(i)}${hash}`,
  `/pool/csi/pvc-${random(i)}${hash}/disk.img`,
]).flat();
const snapshots = Array.from({ length: 1000 }, (_, i) => {
  const time = (1_790_000_000 + i * 61).toString(36);
  return `/pool/csi/snap-${random(i)}.pvc-${random(i % 7)}.${time}.n${hash}.img`;
});
const strange = ["/pool/snap-", "/pool/snap-Z", "/pool/snap-a/snap-b", `/p/a b${hash}`, `/p/${hash}.img`];
const all = [...volumes, ...snapshots, ...strange];

for (const text of ["/snap-", hash]) {
  Deno.test(`listFilesInParts() lists every file with ${text} once, ordered, in as many parts as it takes`, async () => {
    const expected = all.filter((path) => path.includes(text)).toSorted();
    const wide = limited(all, 400);
    assert.deepEqual((await listFilesInParts(text, wide.ask)).map(({ path }) => path), expected);
    assert.ok(wide.patterns.length < 250, `${wide.patterns.length} parts`);
    const narrow = limited(all, 20);
    assert.equal((await listFilesInParts(text, narrow.ask)).length, expected.length);
    assert.ok(narrow.patterns.length < 2000, `${narrow.patterns.length} parts`);
  });
}

Deno.test("divideFiles() leaves no file out, however small the parts", () => {
  const leaves = (part: Part, depth: number): Part[] =>
    part.smaller === undefined || depth === 0
      ? [part]
      : part.smaller().flatMap((smaller) => leaves(smaller, depth - 1));
  for (const text of ["/snap-", hash]) {
    const forms = divideFiles(text).flatMap((part) => leaves(part, 1)).map(({ pattern }) =>
      new RegExp(pattern)
    );
    for (const path of all.filter((path) => path.includes(text))) {
      assert.ok(forms.some((form) => form.test(path.slice(1))), path);
    }
  }
});

Deno.test("listFilesInParts() throws unavailable soon when every answer comes cut", async () => {
  let asked = 0;
  const cut = () => {
    asked++;
    return Promise.resolve(undefined);
  };
  await assert.rejects(listFilesInParts("/snap-", cut), (error) => VolumeError.is(error, "unavailable"));
  assert.ok(asked < 30, `${asked} commands`);
});

Deno.test("listFilesInParts() drops what only matches the router's regular expression", async () => {
  const loose = () => Promise.resolve(JSON.stringify([{ name: "pool/snapX", type: "file", size: 1 }]));
  assert.deepEqual(await listFilesInParts("/snap-", loose), []);
});
