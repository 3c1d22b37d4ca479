import assert from "node:assert/strict";
import { explainRefusal } from "./refusal.ts";

Deno.test("explainRefusal() adds what to do where the words are known", () => {
  assert.match(
    explainRefusal("not enough permissions (9) (/disk/add; line 1)"),
    /policies ssh, read and write/,
  );
  assert.match(explainRefusal("failure: not allowed by device-mode (x)"), /device-mode\/update/);
});

Deno.test("explainRefusal() shows unknown words as they are, shortened", () => {
  assert.equal(explainRefusal("blue giraffe"), `"blue giraffe"`);
  assert.ok(explainRefusal("x".repeat(5000)).length < 320);
});
