import assert from "node:assert/strict";
import { type ClaimUser, reasonAgainstPair } from "./migration_pairs.ts";

const pod = (name: string, over: Partial<ClaimUser> = {}): ClaimUser => ({
  ...{ name, uid: `uid-${name}`, usesClaim: true, hasEnded: false, machine: "vm-1", owners: [] },
  ...over,
});
const ended = (name: string) => pod(name, { usesClaim: false, hasEnded: true });
const disk = (name: string, owner: string) => pod(name, { machine: undefined, owners: [`uid-${owner}`] });

const pairs: readonly (readonly [what: string, pods: ClaimUser[], reason: RegExp | undefined])[] = [
  ["the two pods of one machine", [pod("a"), pod("b")], undefined],
  ["one pod of a machine, as the other is to come", [pod("a")], undefined],
  [
    "plugged disks of one machine's pods",
    [pod("a", { usesClaim: false }), pod("b", { usesClaim: false }), disk("da", "a"), disk("db", "b")],
    undefined,
  ],
  [
    "the two pods of one machine beside those of its migrations that are over",
    [ended("old"), pod("a"), ended("failed"), pod("b")],
    undefined,
  ],
  [
    "two pods of one machine with a disk plugged into each, and into one that is over,",
    [
      pod("a"),
      pod("b"),
      disk("da", "a"),
      disk("db", "b"),
      disk("da2", "a"),
      ended("old"),
      disk("dold", "old"),
    ],
    undefined,
  ],
  ["three pods of one machine", [pod("a"), pod("b"), pod("c")], /more than two pods.*use it: a, b, c/],
  [
    "plugged disks of three pods of one machine",
    [
      ...["a", "b", "c"].map((name) => pod(name, { usesClaim: false })),
      ...["a", "b", "c"].map((name) => disk(`d${name}`, name)),
    ],
    /more than two pods.*use it: da, db, dc/,
  ],
  ["nobody", [], /no pod uses its claim/],
  ["a machine that does not use it", [pod("a", { usesClaim: false })], /no pod uses its claim/],
  [
    "the pods of two machines",
    [pod("a"), pod("b", { machine: "vm-2" })],
    /several virtual machines use it: a, b/,
  ],
  ["a pod beside a machine's", [pod("a"), pod("web", { machine: undefined })], /the pod web uses it/],
  ["a plugged disk of nobody", [pod("a"), disk("da", "gone")], /the pod da uses it/],
];
for (const [what, pods, reason] of pairs) {
  Deno.test(`reasonAgainstPair() ${reason === undefined ? "lets" : "does not let"} ${what} share a volume`, () => {
    const found = reasonAgainstPair(pods);
    if (reason === undefined) assert.equal(found, undefined);
    else assert.match(found ?? "", reason);
  });
}
