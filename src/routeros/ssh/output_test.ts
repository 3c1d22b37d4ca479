import assert from "node:assert/strict";
import { Outputs } from "./output.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const limits = { maxBytes: 100, maxChannelBytes: 60 };

Deno.test("Outputs keeps what is short, in whatever pieces it comes", () => {
  const output = new Outputs(limits).open(() => assert.fail("it is not too long"));
  for (const byte of bytes("ü[1,2]\ufeff")) output.add("printed", Uint8Array.of(byte));
  output.add("errors", bytes("no such item"));
  assert.deepEqual(output.end(), { printed: "ü[1,2]\ufeff", errors: "no such item" });
  assert.equal(output.isOverlong, false);
});

Deno.test("Outputs drops an output that is too long, once, and keeps the others", () => {
  const outputs = new Outputs(limits);
  let dropped = 0;
  const [long, short] = [outputs.open(() => dropped++), outputs.open(() => assert.fail())];
  short.add("printed", bytes("short"));
  for (let i = 0; i < 1000; i++) long.add(i % 2 === 0 ? "printed" : "errors", bytes("0123456789"));
  assert.deepEqual([dropped, long.isOverlong, long.bytes], [1, true, 0]);
  assert.deepEqual(long.end(), { printed: "", errors: "" });
  assert.equal(short.end().printed, "short");
});

Deno.test("Outputs drops the longest when all together are too long", () => {
  const outputs = new Outputs(limits);
  const dropped: string[] = [];
  const open = (name: string) => outputs.open(() => dropped.push(name));
  const [a, b, c] = [open("a"), open("b"), open("c")];
  b.add("printed", bytes("b".repeat(50)));
  a.add("printed", bytes("a".repeat(30)));
  c.add("printed", bytes("c".repeat(21)));
  assert.deepEqual(dropped, ["b"]);
  // What has ended makes room.
  a.end();
  c.add("printed", bytes("c".repeat(30)));
  open("d").add("printed", bytes("d".repeat(45)));
  assert.deepEqual(dropped, ["b"]);
  assert.equal(c.end().printed, "c".repeat(51));
});
