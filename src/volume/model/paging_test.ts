import assert from "node:assert/strict";
import { aSnapshotId } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { cutPage, maxPageBytes } from "./paging.ts";
import { isSnapshotId } from "./snapshots/snapshots.ts";

const item = (number: number) => ({ id: `v${String(number).padStart(4, "0")}` });
const items = Array.from({ length: 10 }, (_, index) => item(index));
const small = () => 1;

Deno.test("cutPage() returns every item once, in pages of any size", () => {
  for (const maxEntries of [1, 2, 3, 9, 10, 11]) {
    const seen: string[] = [];
    let token = "";
    let pages = 0;
    do {
      const page = cutPage(items, { token, maxEntries }, small);
      assert.ok(page.items.length <= maxEntries);
      seen.push(...page.items.map(({ id }) => id));
      token = page.nextToken;
    } while (token !== "" && ++pages < 20);
    assert.deepEqual(seen, items.map(({ id }) => id), String(maxEntries));
  }
});

Deno.test("cutPage() returns no token with the last page", () => {
  assert.deepEqual(cutPage(items, { token: "", maxEntries: 0 }, small), { items, nextToken: "" });
  assert.deepEqual(cutPage(items, { token: "", maxEntries: 10 }, small), { items, nextToken: "" });
  assert.deepEqual(cutPage([], { token: "", maxEntries: 3 }, small), { items: [], nextToken: "" });
});

Deno.test("cutPage() goes on at the same place when items before it come and go, and the one that the token names", () => {
  const { nextToken: token } = cutPage(items, { token: "", maxEntries: 4 }, small);
  const rest = items.slice(4);
  for (const before of [[], items.slice(0, 3), items.slice(0, 4), [{ id: "v00000" }, ...items.slice(0, 4)]]) {
    assert.deepEqual(cutPage([...before, ...rest], { token, maxEntries: 0 }, small).items, rest);
  }
});

Deno.test("cutPage() ends a page before it is too large to be received, but gives at least one item", () => {
  const third = () => maxPageBytes / 3;
  const page = cutPage(items, { token: "", maxEntries: 0 }, third);
  assert.equal(page.items.length, 3);
  assert.equal(page.nextToken, "after:v0002");
  assert.equal(cutPage(items, { token: "", maxEntries: 0 }, () => maxPageBytes + 1).items.length, 1);
});

Deno.test("cutPage() refuses tokens that it never issued", () => {
  const tokens = [
    "after:",
    "after:A",
    "v0001",
    "5",
    "after:after:v",
    " after:v",
    "after:v\n",
    "AFTER:v",
    "x".repeat(9999),
  ];
  for (const token of tokens) {
    assert.throws(
      () => cutPage(items, { token, maxEntries: 0 }, small),
      refusal("bad-token"),
      token.slice(0, 20),
    );
  }
});

Deno.test("cutPage() continues after a snapshot where snapshots are listed, and nowhere else", () => {
  const ids = ["a", "b", "c"].map(aSnapshotId).toSorted();
  const snapshots = ids.map((id) => ({ id }));
  const first = cutPage(snapshots, { token: "", maxEntries: 2 }, small, isSnapshotId);
  assert.equal(first.nextToken, `after:${ids[1]}`);
  const rest = cutPage(snapshots, { token: first.nextToken, maxEntries: 2 }, small, isSnapshotId);
  assert.deepEqual(rest, { items: [{ id: ids[2] }], nextToken: "" });
  const request = { token: first.nextToken, maxEntries: 0 };
  assert.throws(() => cutPage(items, request, small), refusal("bad-token"));
  for (const token of ["after:v0001", `after:${ids[0]}0`, `after:${ids[0]!.toUpperCase()}`]) {
    const wrong = { token, maxEntries: 0 };
    assert.throws(() => cutPage(snapshots, wrong, small, isSnapshotId), refusal("bad-token"), token);
  }
});

Deno.test("cutPage() refuses a negative number of entries", () => {
  assert.throws(() => cutPage(items, { token: "", maxEntries: -1 }, small), refusal("invalid"));
});
