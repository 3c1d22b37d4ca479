import assert from "node:assert/strict";
import { type ClaimUser, reasonAgainstPair } from "./virtual_machines.ts";

const pod = (name: string, over: Partial<ClaimUser> = {}): ClaimUser => ({
  ...{ name, uid: `uid-${name}`, usesClaim: true, machine: "vm-1", owners: [] },
  ...over,
});
const disk = (name: string, owner: string) => pod(name, { machine: undefined, owners: [`uid-${owner}`] });

const pairs: readonly (readonly [what: string, pods: ClaimUser[], reason: RegExp | undefined])[] = [
  ["the two pods of one machine", [pod("a"), pod("b")], undefined],
  ["one pod of a machine, as the other is to come", [pod("a")], undefined],
  [
    "plugged disks of one machine's pods",
    [pod("a", { usesClaim: false }), pod("b", { usesClaim: false }), disk("da", "a"), disk("db", "b")],
    undefined,
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
