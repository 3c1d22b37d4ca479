import assert from "node:assert/strict";
import { VolumeError } from "../../errors.ts";
import { parseMkfsOptions, withoutPanic } from "./mkfs_options.ts";
import type { FilesystemType } from "../capabilities.ts";

const good: readonly [FilesystemType, string, number][] = [
  ["ext4", "", 0],
  ["ext4", "-I 256", 2],
  ["ext4", "-E stride=16,stripe_width=64 -O ^has_journal,quota -m 0.5", 6],
  ["ext4", "-T largefile -J size=64", 4],
  ["xfs", "-d agcount=8,noalign -m reflink=0,rmapbt=1 -l size=64m -s size=4096", 8],
];

for (const [filesystem, text, count] of good) {
  Deno.test(`parseMkfsOptions() accepts "${text}" for ${filesystem}`, () => {
    assert.equal(parseMkfsOptions(text, filesystem).length, count);
  });
}

const bad: readonly [FilesystemType, string][] = [
  ["ext4", "-F"],
  ["ext4", "-F -F"],
  ["xfs", "-f"],
  ["ext4", "-n"],
  ["xfs", "-N"],
  ["ext4", "-S -b"],
  ["ext4", "/dev/sda"],
  ["ext4", "-I 256 /dev/sda"],
  ["ext4", "-d /etc"],
  ["ext4", "-J device=/dev/sda"],
  ["xfs", "-l logdev=/dev/sda"],
  ["xfs", "-d name=/dev/sda"],
  ["xfs", "-d file=1"],
  ["xfs", "-d size=1g"],
  ["xfs", "-p proto"],
  ["ext4", "-E offset=1024"],
  ["ext4", "-E lazy_itable_init=1"],
  ["ext4", "-E discard"],
  ["ext4", "-t ext3"],
  ["ext4", "-I"],
  ["ext4", "-I256"],
  ["ext4", "-I 256 256"],
  ["ext4", "-I -F"],
  ["ext4", "-I 256 -I 512"],
  ["ext4", "-O a;b"],
  ["ext4", "-O journal_dev"],
  ["ext4", "-O ^quota,journal_dev"],
  ["ext4", "--help x"],
  ["ext4", "constructor x"],
  ["xfs", "-I 256"],
  ["ext4", "-e panic"],
  ["ext4", "-epanic"],
  ["ext4", "-e continue -e panic"],
  ["ext4", "-E errors=panic"],
  ["ext4", "-E stride=16,errors=panic"],
  ["xfs", "-e panic"],
];

for (const [filesystem, text] of bad) {
  Deno.test(`parseMkfsOptions() throws invalid for "${text}" with ${filesystem}`, () => {
    assert.throws(() => parseMkfsOptions(text, filesystem), (error) => VolumeError.is(error, "invalid"));
  });
}

Deno.test("parseMkfsOptions() says that a panic would stop the node with every other volume on it", () => {
  assert.throws(
    () => parseMkfsOptions("-m 1 -e panic", "ext4"),
    /an error of one volume would stop the node/,
  );
});

Deno.test("withoutPanic() turns the panic of an earlier StorageClass into read-only, and changes nothing else", () => {
  assert.equal(withoutPanic("-m 1 -e panic -b 4096"), "-m 1 -e remount-ro -b 4096");
  for (const text of ["", "-e continue", "-e remount-ro", "-m 1", "-epanic", "-E panic", "-e panicky"]) {
    assert.equal(withoutPanic(text), text);
  }
});
