import assert from "node:assert/strict";
import { alignColumns } from "./table.ts";

Deno.test("alignColumns() makes each column as wide as its longest cell, and leaves no trailing blanks", () => {
  const rows = [["step", "ms", "note"], ["a", "1500", ""], ["delete", "7", "gone"]];
  assert.deepEqual(alignColumns(rows, [1]), ["step      ms  note", "a       1500", "delete     7  gone"]);
  assert.deepEqual(alignColumns([]), []);
});
