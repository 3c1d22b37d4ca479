import assert from "node:assert/strict";
import { aSnapshotId } from "../../../tests/fakes/records.ts";
import { volumeIdFor } from "./ids.ts";
import { formatSource, parseSource, type SourceRef } from "./sources.ts";

const volume = volumeIdFor("a");
const snapshot = aSnapshotId("a");

Deno.test("parseSource() reads back what formatSource() wrote", () => {
  const sources: SourceRef[] = [
    { kind: "volume", id: volume },
    { kind: "volume", id: "pvc-0f8fad5b-d9cb-469f-a165-70867728950e" },
    { kind: "snapshot", id: snapshot },
  ];
  for (const source of sources) assert.deepEqual(parseSource(formatSource(source)), source);
  assert.equal(formatSource({ kind: "volume", id: volume }), `v:${volume}`);
  assert.equal(formatSource({ kind: "snapshot", id: snapshot }), `s:${snapshot}`);
});

Deno.test("parseSource() takes neither a snapshot for a volume nor anything else for one of them", () => {
  const wrong = [
    undefined,
    "",
    "v:",
    "s:",
    volume,
    snapshot,
    `s:${volume}`,
    `v:${snapshot}`,
    `x:${volume}`,
    "v:A",
    "v:a b",
  ];
  for (const text of wrong) assert.equal(parseSource(text), undefined, text);
});
