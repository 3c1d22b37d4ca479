import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { mkfsExt4Arguments, mkfsXfsArguments, parseXfsVersion } from "./mkfs_command.ts";

const plain = { extra: [], lazy: true };

Deno.test("mkfsExt4Arguments() keeps no reserve, discards nothing and names every feature", () => {
  const line = mkfsExt4Arguments("/dev/loop7", plain).join(" ");
  assert.match(line, /^-q -m 0 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 -O none,has_journal,/);
  assert.match(line, / \/dev\/loop7$/);
  assert.doesNotMatch(line, /orphan_file|metadata_csum_seed|-F/);
});

Deno.test("mkfsExt4Arguments() initialises everything at once when not lazy", () => {
  const args = mkfsExt4Arguments("/dev/loop7", { ...plain, lazy: false });
  assert.ok(args.includes("nodiscard,lazy_itable_init=0,lazy_journal_init=0"));
});

Deno.test("mkfsExt4Arguments() joins extra options with its own, each option once", () => {
  const extra = ["-E", "stride=16", "-O", "^has_journal,quota", "-m", "1", "-I", "512"];
  const args = mkfsExt4Arguments("/dev/loop7", { extra, lazy: true, label: "data" });
  const value = (option: string) => args[args.indexOf(option) + 1];
  assert.equal(value("-E"), "nodiscard,lazy_itable_init=1,lazy_journal_init=1,stride=16");
  assert.match(value("-O")!, /^none,extent,.*,\^has_journal,quota$/);
  assert.deepEqual([value("-m"), value("-I"), value("-L")], ["1", "512", "data"]);
  assert.equal(args.filter((word) => word === "-E").length, 1);
});

const versions: readonly [string, string[], string[]][] = [
  ["5.0", ["crc=1,finobt=1,reflink=1,rmapbt=0", "sparse=1"], ["bigtime", "nrext64", "exchange", "parent"]],
  ["5.10", ["bigtime=1,inobtcount=1"], ["nrext64", "exchange", "parent"]],
  ["6.1", ["bigtime=1", "sparse=1,nrext64=0"], ["exchange", "parent"]],
  ["6.9", ["nrext64=0"], ["exchange", "parent"]],
  ["6.10", ["sparse=1,nrext64=0,exchange=0", "parent=0"], []],
  ["7.0", ["exchange=0", "parent=0"], []],
];

for (const [version, present, absent] of versions) {
  Deno.test(`mkfsXfsArguments() names the features that version ${version} knows`, () => {
    const line = mkfsXfsArguments("/dev/loop7", plain, version).join(" ");
    assert.match(line, /^-q -K /);
    assert.match(line, / \/dev\/loop7$/);
    for (const text of present) assert.ok(line.includes(text), text);
    for (const word of absent) assert.ok(!line.includes(word), word);
    assert.ok(!line.includes("-f"));
  });
}

Deno.test("mkfsXfsArguments() lets an extra feature replace its own", () => {
  const line = mkfsXfsArguments("/dev/loop7", { ...plain, extra: ["-m", "reflink=0"] }, "6.1").join(" ");
  assert.match(line, /-m crc=1,finobt=1,rmapbt=0,bigtime=1,inobtcount=1,reflink=0 /);
});

Deno.test("parseXfsVersion() reads major and minor", () => {
  assert.equal(parseXfsVersion("mkfs.xfs version 6.1.0\n"), "6.1");
});

Deno.test("parseXfsVersion() throws precondition when there is no version", () => {
  assert.throws(() => parseXfsVersion("what?"), refusal("precondition"));
});
