import assert from "node:assert/strict";
import type { Reach } from "../../host/network.ts";
import type { StoredVolume } from "../../volume/ports/ports.ts";
import { judgeNvmePort } from "./exports.ts";

const exported: StoredVolume = {
  id: "pvc-1",
  imagePath: "/pool/csi/pvc-1.img",
  sizeBytes: 1n,
  exported: true,
  exportNqn: "nqn",
  exportPort: 4420,
  comment: "",
};
const open: Reach = { state: "open", ms: 1 };
const refused: Reach = { state: "refused", reason: "ECONNREFUSED" };
const silent: Reach = { state: "silent", reason: "no answer within 5 s" };

const cases: readonly (readonly [string, Reach, readonly StoredVolume[] | undefined, string, RegExp])[] = [
  ["answers", open, [exported], "ok", /answers; exported there: 1/],
  ["answers with nothing exported", open, [], "ok", /exported there: 0/],
  ["answers a machine that did not ask the router", open, undefined, "ok", /not known/],
  ["refuses with nothing exported", refused, [], "ok", /as nothing is exported/],
  [
    "refuses with an export on another port",
    refused,
    [{ ...exported, exportPort: 4421 }],
    "ok",
    /as nothing/,
  ],
  ["refuses in spite of an export", refused, [exported], "problem", /though it should not/],
  ["refuses a machine that did not ask the router", refused, undefined, "warning", /wrong place/],
  ["is silent with nothing exported", silent, [], "warning", /no answer/],
  ["is silent in spite of an export", silent, [exported], "problem", /no answer/],
];

for (const [what, reach, volumes, state, words] of cases) {
  Deno.test(`judgeNvmePort() finds a port that ${what} to be: ${state}`, () => {
    const finding = judgeNvmePort({ address: "10.0.0.1", port: 4420, reach, volumes });
    assert.equal(finding.state, state);
    assert.match(finding.found, words);
  });
}
