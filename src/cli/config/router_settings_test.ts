import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { FlagError, readFlags } from "../flags.ts";
import { routerFlags } from "./flag_tables.ts";
import { check, readBasePaths, readKnownNodes } from "./router_settings.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { formatProfile } from "../../router_profile/profile.ts";
import { readVolumeCommand } from "./config.ts";

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

const login = ["--rds-address", "10.0.0.1", "--rds-key", "/key", "--rds-host-key", "ssh-ed25519 AAAA"];

/** The settings of a controller whose router answered so. */
function settingsFor(answers: Partial<RouterBehaviours>) {
  const profile = formatProfile({ name: "r", version: "7.24", poolFilesystem: "btrfs", answers: {} });
  const text = JSON.stringify({ ...JSON.parse(profile), answers });
  const args = ["pvc-1", ...login, "--cluster-id", "c", "--router-profile", "/profile.json"];
  return readVolumeCommand(args, () => undefined, { readText: () => text }).config.settings;
}

Deno.test("readVolumeCommand() accepts the profile of a later version, and refuses a question with a typing error", () => {
  assert.equal(settingsFor({ grow: "live", ofTomorrow: "yes" } as object).growth, "live");
  const mistyped = () => settingsFor({ grw: "live" } as object);
  const isTold = (error: unknown) =>
    error instanceof FlagError && /no question grw; did you mean grow\?/.test(error.message);
  assert.throws(mistyped, isTold);
});
