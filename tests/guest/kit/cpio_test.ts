import assert from "node:assert/strict";
import { cpioArchive, type CpioEntry } from "./cpio.ts";
import { findProgram } from "../../../tools/host_command.ts";
import { makeScratch } from "../../support/scratch.ts";

const cpio = findProgram("cpio") ?? findProgram("busybox");
if (cpio === undefined) Deno.stderr.writeSync(new TextEncoder().encode("ignored: cpio is not installed\n"));

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

Deno.test({
  name: "cpio can read cpioArchive(): folders, files of any length with their modes, links",
  ignore: cpio === undefined,
  fn: async () => {
    const files = [0, 1, 2, 3, 4, 5].map((length): CpioEntry => ({
      kind: "file",
      path: `a/${"x".repeat(length + 1)}`,
      mode: 0o640 + length,
      bytes: new Uint8Array(length).fill(65),
    }));
    const archive = cpioArchive([
      { kind: "folder", path: "a" },
      ...files,
      { kind: "link", path: "a/link", target: "../b" },
    ]);
    await using scratch = await makeScratch();
    const folder = scratch.path;
    await Deno.writeFile(`${folder}/archive`, joined(archive));
    const args = [...(cpio!.endsWith("busybox") ? ["cpio"] : []), "-i", "-d", "-F", "archive"];
    const { success, stderr } = await new Deno.Command(cpio!, { args, cwd: folder, stdin: "null" })
      .output();
    assert.ok(success, new TextDecoder().decode(stderr));
    for (const [length, { path }] of files.entries()) {
      assert.equal(await Deno.readTextFile(`${folder}/${path}`), "A".repeat(length));
      assert.equal((await Deno.stat(`${folder}/${path}`)).mode! & 0o777, 0o640 + length);
    }
    assert.equal(await Deno.readLink(`${folder}/a/link`), "../b");
  },
});
