import assert from "node:assert/strict";
import { aPool } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { assertGone, defaultSettleMs } from "./absence.ts";
import type { StoredFile } from "../model/inventory.ts";

const pool = aPool();
const bases = ["/pool/csi", "/fast/csi"];
const filePrefix = "v.0123abcd";
const image: StoredFile = { path: `/pool/csi/${filePrefix}.img`, sizeBytes: 1n, directory: false };
const inSubvolume: StoredFile = { path: `/pool/csi/${filePrefix}/disk.img`, sizeBytes: 1n, directory: false };

function state(over: { upMs?: number; pools?: readonly string[]; files?: readonly StoredFile[] } = {}) {
  const pools = (over.pools ?? ["pool", "fast"]).map((mountPoint) => ({ ...pool, mountPoint }));
  return { upMs: over.upMs ?? defaultSettleMs, pools, files: over.files ?? [] };
}

Deno.test("assertGone() accepts a settled router with every pool mounted and no image", () => {
  assertGone("v", filePrefix, state(), bases, defaultSettleMs);
  const others: StoredFile[] = [
    { path: "/pool/csi", sizeBytes: 0n, directory: true },
    { path: `/pool/csi/${filePrefix}`, sizeBytes: 0n, directory: true },
    { path: `/pool/csi/${filePrefix}.img`, sizeBytes: 0n, directory: true },
    { path: `/pool/csi/${filePrefix}.img.0123abcd.part`, sizeBytes: 1n, directory: false },
    { path: `/pool/csi/w${filePrefix}.img`, sizeBytes: 1n, directory: false },
    { path: `/pool/csi/${filePrefix}0.img`, sizeBytes: 1n, directory: false },
    { path: `/pool/csi/${filePrefix}/notes.txt`, sizeBytes: 1n, directory: false },
  ];
  for (const file of others) assertGone("v", filePrefix, state({ files: [file] }), bases, defaultSettleMs);
});

Deno.test("assertGone() concludes nothing from what a router cannot show", () => {
  const cases: [string, ReturnType<typeof state>, RegExp][] = [
    ["just booted", state({ upMs: 0 }), /booted only 0 s ago.*try again in 120 s/],
    ["almost settled", state({ upMs: defaultSettleMs - 1 }), /try again in 1 s/],
    ["one pool away", state({ pools: ["pool"] }), /pool=fast mounted=pool/],
    ["another pool away", state({ pools: ["fast"] }), /pool=pool/],
    ["no pool at all", state({ pools: [] }), /mounted=none/],
    ["look-alike pools", state({ pools: ["pool2", "fast", "poo"] }), /pool=pool /],
    ["an image without its disk", state({ files: [image] }), /file=\/pool\/csi\/v\.0123abcd\.img/],
    ["one in a subvolume", state({ files: [inSubvolume] }), /file=\/pool\/csi\/v\.0123abcd\/disk\.img/],
    [
      "one in the folder of another time",
      state({ files: [{ ...image, path: `/pool/old/${filePrefix}.img` }] }),
      /file=\/pool\/old/,
    ],
  ];
  for (const [name, view, text] of cases) {
    const gone = () => assertGone("v", filePrefix, view, bases, defaultSettleMs);
    assert.throws(gone, refusal("unavailable", text), name);
  }
});
