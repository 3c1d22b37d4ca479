import assert from "node:assert/strict";
import { testContext } from "../../../tests/fakes/controller_deps.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { directoryMark, markedName } from "../../volume/model/directory/names.ts";
import type { DirectoryDeps } from "./deps.ts";
import { deleteDirectory } from "./delete.ts";

const cluster = directoryMark("home");
const name = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const path = `/share/k8s/${markedName(name, cluster)}`;

/** Deletes a directory of another disk, that is not there when the router is first looked at, and then as said. */
async function deleted(...entries: readonly string[]): Promise<void> {
  const share = { slot: "share", isShared: true, freeBytes: 0n, filesystemUuid: "now" };
  const reads = [[], entries];
  const find = () => {
    const found = reads.shift()!.map((path) => ({ path, sizeBytes: 0n, directory: true }));
    return Promise.resolve({ share, images: [], mountsBelow: [], upMs: Infinity, entries: found });
  };
  const settings = { cluster, basePaths: ["/share/k8s"], addresses: [{ host: "nas", port: 2049 }] };
  const deps = { store: { find }, settings: { ...settings, settleMs: 0 }, removals: { has: () => false } };
  await deleteDirectory(deps as unknown as DirectoryDeps, { hash: "00000000", path, name }, testContext());
}

Deno.test("a directory of another disk counts as deleted only by what was deleted here, and not when it is back", async () => {
  const earlier = `${path}.deleted-00112233`;
  await deleted(earlier);
  await assert.rejects(deleted(), refusal("precondition", /or on another disk/));
  await assert.rejects(deleted(path), refusal("precondition"));
  await assert.rejects(deleted(path, earlier), refusal("precondition"));
});
