import assert from "node:assert/strict";
import { buildFolder, e2eBuildFolder } from "../kit/go_build.ts";
import { exclusions } from "./exclusions.ts";
import { suitePattern, titleOf, uncovered, upstreamSuites } from "./suites_wanted.ts";

const external = "[sig-storage] External Storage [Driver: x]";

/** Names as upstream prints them, and the suite that each belongs to. */
const names: readonly (readonly [name: string, title: string])[] = [
  [`${external} [Testpattern: Dynamic PV (default fs)] volumes should store data`, "volumes"],
  [`${external} [Testpattern: Dynamic PV (ntfs)] [Feature:Windows] volumes should store data`, "volumes"],
  [`${external} [Testpattern: Dynamic PV (xfs)] [Slow] multiVolume [Slow] should access`, "multiVolume-xfs"],
  [
    `${external} [Testpattern: Dynamic PV (block volmode)] multiVolume [Slow] should access`,
    "multiVolume-block",
  ],
  [
    `${external} [Testpattern: Dynamic PV (default fs)(allowExpansion)] volume-expand Verify if offline works`,
    "volume-expand",
  ],
  [
    `${external} [Testpattern: Dynamic Snapshot (delete policy)] snapshottable [Feature:X] volume snapshot controller`,
    "snapshottable",
  ],
];

Deno.test("suitePattern() finds the specifications of its suite, whatever labels they carry, and of no other", () => {
  for (const [name, title] of names) {
    const found = upstreamSuites.filter((suite) => suitePattern(suite).test(name)).map(titleOf);
    assert.deepEqual(found, [title], name);
  }
  const others = [
    `${external} [Testpattern: Dynamic Snapshot (delete policy)] snapshottable-stress [Feature:X] should support`,
    `[sig-storage] In-tree Volumes [Driver: local] [Testpattern: Dynamic PV (default fs)] volumes should store data`,
  ];
  for (const name of others) assert(!upstreamSuites.some((suite) => suitePattern(suite).test(name)), name);
});

Deno.test("uncovered() finds specifications that no part of a divided suite has", () => {
  const forgotten = `${external} [Testpattern: Dynamic PV (btrfs)] multiVolume [Slow] should access`;
  assert.deepEqual(uncovered(upstreamSuites, [...names.map(([name]) => name), forgotten]), [forgotten]);
});

Deno.test("every suite of upstream's has a title of its own, and no exclusion takes what it must pass", () => {
  assert.equal(new Set(upstreamSuites.map(titleOf)).size, upstreamSuites.length);
  for (const [name] of names) assert(!exclusions.some(({ specs }) => specs.test(name)), name);
});

Deno.test("the module of upstream's tests names the same release of everything as the one of the cluster", async () => {
  const versions = async (folder: string) => {
    const text = await Deno.readTextFile(`${folder}/go.mod`);
    return new Map(
      [...text.matchAll(/^\s+(\S+)(?: => \S+)? (v\S+)/gm)].map(([, name, version]) => [name, version]),
    );
  };
  const [cluster, e2e] = await Promise.all([versions(buildFolder), versions(e2eBuildFolder)]);
  const differing = [...e2e].filter(([name, version]) => (cluster.get(name) ?? version) !== version);
  assert.deepEqual(differing, []);
  const release = (text: string) => /^(?:require|\s)\s*k8s\.io\/kubernetes (v\S+)/m.exec(text)?.[1];
  const texts = await Promise.all(
    [buildFolder, e2eBuildFolder].map((one) => Deno.readTextFile(`${one}/go.mod`)),
  );
  assert.match(release(texts[0] ?? "") ?? "", /^v1\./);
  assert.equal(release(texts[0] ?? ""), release(texts[1] ?? ""));
});
