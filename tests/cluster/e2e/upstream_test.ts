import assert from "node:assert/strict";
import { titleOf, type UpstreamSuite } from "./suites_wanted.ts";
import { wantedOf } from "./upstream.ts";

const suites: readonly UpstreamSuite[] = [
  { name: "volumes", mustPass: /./ },
  { name: "multiVolume", part: "block volmode", mustPass: /./ },
];

Deno.test("wantedOf() selects suites by their titles, and all by none", () => {
  assert.deepEqual(wantedOf(suites, "multiVolume-block").map(titleOf), ["multiVolume-block"]);
  assert.deepEqual(wantedOf(suites, " ").map(titleOf), ["volumes", "multiVolume-block"]);
});

Deno.test("wantedOf() refuses the title of no suite, so that nothing passes by not being there", () => {
  assert.throws(
    () => wantedOf(suites, "volumes volume"),
    /no suite .*: volume; there are volumes multiVolume-block/,
  );
});
