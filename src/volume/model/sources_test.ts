import assert from "node:assert/strict";
import { aSnapshotId } from "../../../tests/fakes/records.ts";
import { volumeIdFor } from "./ids/ids.ts";
import { formatSource } from "./sources.ts";

const volume = volumeIdFor("a");
const snapshot = aSnapshotId("a");

Deno.test("formatSource() distinguishes a volume from a snapshot", () => {
  assert.equal(formatSource({ kind: "volume", id: volume }), `v:${volume}`);
  assert.equal(formatSource({ kind: "snapshot", id: snapshot }), `s:${snapshot}`);
});
