import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { readFlags } from "../flags.ts";
import { routerFlags } from "./flag_tables.ts";
import { check, readBasePaths, readKnownNodes } from "./router_settings.ts";

const read = (...args: string[]) => readFlags(routerFlags, args, () => undefined);

Deno.test("readKnownNodes() and readBasePaths() say what a flag may be where its value is refused", () => {
  const flags = read("--known-node", "a b", "--base-path", "pool");
  readKnownNodes(flags, []);
  readBasePaths(flags);
  assert.deepEqual(flags.problems, [
    '--known-node cannot be "a b"; use 1 to 64 characters of A-Z, a-z, 0-9, "." and "-"',
    '--base-path cannot be "pool"; use an absolute path of at most 64 characters A-Z, a-z, 0-9, ., _ and -, ' +
    "without .. and without a slash at its end",
  ]);
});

Deno.test("check() passes on an error that is no refusal", () => {
  const fail = () => {
    throw new TypeError("a fault");
  };
  assert.throws(() => check(read(), "known-node", "a", fail), TypeError);
  assert.doesNotThrow(() =>
    check(read(), "known-node", "a", () => {
      throw new VolumeError("invalid", "Cannot; use another one");
    })
  );
});
