import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import {
  formatCapabilities,
  isReadOnlyMode,
  modeLetters,
  parseRecordedCapabilities,
} from "./capabilities.ts";
import { parseCapabilities, parseCapability, type RequestedCapability } from "./requested_capabilities.ts";

const mount = (mode: string, fsType = ""): RequestedCapability => ({ access: "mount", fsType, mode });
const block = (mode: string): RequestedCapability => ({ access: "block", fsType: "", mode });

Deno.test("parseCapability() reads all six modes for block and all but RWX for file systems", () => {
  const modes = Object.keys(modeLetters).map((mode) => mode.toUpperCase().replaceAll("-", "_"));
  assert.equal(modes.length, 6);
  for (const mode of modes) {
    assert.equal(parseCapability(block(mode)).access, "block");
    if (mode !== "MULTI_NODE_MULTI_WRITER") assert.equal(parseCapability(mount(mode, "xfs")).access, "mount");
  }
});

Deno.test("parseCapability() defaults to ext4 where no file system is named", () => {
  const capability = parseCapability(mount("SINGLE_NODE_WRITER"));
  assert.deepEqual(capability, { access: "mount", filesystem: "ext4", mode: "single-node-writer" });
});

Deno.test("parseCapability() refuses what is incomplete or unsafe", () => {
  const cases: [RequestedCapability, RegExp][] = [
    [{ access: undefined, fsType: "", mode: "SINGLE_NODE_WRITER" }, /neither block nor mount/],
    [mount("UNKNOWN"), /mode=UNKNOWN/],
    [mount(""), /access mode/],
    [mount("MULTI_NODE_SINGLE_WRITER"), /access mode/],
    [mount("single-node-writer"), /access mode/],
    [mount("constructor"), /access mode/],
    [mount("MULTI_NODE_MULTI_WRITER"), /two nodes would write/],
    [mount("SINGLE_NODE_WRITER", "EXT4"), /fsType="EXT4"/],
    [mount("SINGLE_NODE_WRITER", "zfs"), /supported are ext4 and xfs/],
  ];
  for (const [capability, text] of cases) {
    assert.throws(() => parseCapability(capability), refusal("invalid", text), capability.mode);
  }
});

Deno.test("parseCapabilities() gathers the modes of one kind", () => {
  const parsed = parseCapabilities([
    block("MULTI_NODE_MULTI_WRITER"),
    block("SINGLE_NODE_WRITER"),
    block("SINGLE_NODE_WRITER"),
  ]);
  assert.deepEqual(parsed, {
    kind: { access: "block" },
    modes: ["multi-node-multi-writer", "single-node-writer"],
  });
});

Deno.test("parseCapabilities() refuses an empty list and different kinds", () => {
  const writer = "SINGLE_NODE_WRITER";
  for (const list of [[], [block(writer), mount(writer)], [mount(writer, "xfs"), mount(writer)]]) {
    assert.throws(() => parseCapabilities(list), refusal("invalid"));
  }
});

Deno.test("formatCapabilities() does not depend on the order of modes, and is read back", () => {
  const kind = { access: "mount", filesystem: "xfs" } as const;
  const one = formatCapabilities({ kind, modes: ["single-node-writer", "multi-node-reader-only"] });
  assert.equal(one, "xfs/nw");
  assert.equal(formatCapabilities({ kind, modes: ["multi-node-reader-only", "single-node-writer"] }), one);
  assert.deepEqual(parseRecordedCapabilities(one), {
    kind,
    modes: ["multi-node-reader-only", "single-node-writer"],
  });
  assert.equal(formatCapabilities(parseRecordedCapabilities("block/mnorwx")!), "block/mnorwx");
});

Deno.test("formatCapabilities() marks an encrypted volume, and is read back", () => {
  for (const text of ["block/ex", "ext4/enw", "block/emnorwx"]) {
    const read = parseRecordedCapabilities(text)!;
    assert.equal(read.encrypted, true);
    assert.equal(formatCapabilities(read), text);
    const { encrypted: _encrypted, ...plain } = read;
    assert.equal(formatCapabilities(plain), text.replace("/e", "/"));
  }
  assert.equal("encrypted" in parseRecordedCapabilities("ext4/w")!, false);
});

Deno.test("parseRecordedCapabilities() refuses every other text", () => {
  for (const text of ["", "ext4", "ext4/", "zfs/w", "ext4/q", "ext4/W", "block/w "]) {
    assert.equal(parseRecordedCapabilities(text), undefined, text);
  }
});

Deno.test("the record's letters never change, and each stands for one mode", () => {
  assert.deepEqual(Object.values(modeLetters), ["w", "r", "o", "m", "n", "x"]);
});

Deno.test("isReadOnlyMode() holds for the two modes that only read", () => {
  const reading = Object.entries(modeLetters).filter(([mode]) =>
    isReadOnlyMode(mode as keyof typeof modeLetters)
  );
  assert.deepEqual(reading.map(([, letter]) => letter), ["r", "n"]);
});
