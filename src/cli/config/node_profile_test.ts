import assert from "node:assert/strict";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { formatProfile } from "../../router_profile/profile.ts";
import { FlagError } from "../flags.ts";
import { readServeConfig } from "./config.ts";

const node = ["--mode", "node", "--node-id", "node-1"];
const none = () => undefined;

Deno.test("readServeConfig() takes a node's settle time from routers' profiles, and prefers its flag", () => {
  const text = (disksLate: number | undefined) =>
    formatProfile({
      name: "r",
      version: "7.24",
      vocabulary: { rose: true, fileCopy: true },
      poolFilesystem: "btrfs",
      answers: disksLate === undefined ? {} : { disksLate },
    });
  const settle = (files: Readonly<Record<string, string>>, ...more: string[]) => {
    const flags = [...node, "--router-profile", Object.keys(files).join(","), ...more];
    return readServeConfig(flags, none, (path) => files[path]!).node?.fenceSettleMs;
  };
  assert.equal(settle({ "/a": text(0) }), 90_000, "several reads have to fit");
  assert.equal(settle({ "/a": text(0), "/b": text(100_000) }), 160_000);
  assert.equal(settle({ "/a": text(0), "/b": text(undefined) }), 120_000);
  assert.equal(settle({ "/a": text(0) }, "--fence-interval", "5s"), 30_000);
  assert.equal(settle({ "/a": text(0) }, "--fence-settle-time", "300s"), 300_000);
  assert.throws(
    () => settle({ "/a": "{}" }),
    (error) => error instanceof FlagError && /--router-profile/.test(error.message),
  );
});

Deno.test("readServeConfig() says that trims free nothing where no router's profile has a doubt of it", () => {
  const vocabulary = { rose: true, fileCopy: true };
  const warnings = (
    discards: readonly (RouterBehaviours["discard"] | undefined)[],
    ...more: readonly string[]
  ) => {
    const paths = discards.map((_, index) => `/${index}`).join(",");
    const readText = (path: string) => {
      const discard = discards[Number(path.slice(1))];
      const profile = { name: "r", version: "7.24", vocabulary, poolFilesystem: "btrfs" } as const;
      return formatProfile({ ...profile, answers: discard === undefined ? {} : { discard } });
    };
    return readServeConfig([...node, "--router-profile", paths, ...more], none, readText).warnings;
  };
  const weekly = ["--fstrim-interval", "168h"];
  const reason = (said: string) => [
    `--fstrim-interval has no effect because every router's profile answers discard with ${said}`,
  ];
  assert.deepEqual(warnings(["keeps"], ...weekly), reason("keeps"));
  assert.deepEqual(warnings(["keeps", "unsupported"], ...weekly), reason("keeps, unsupported"));
  for (const discards of [[], ["frees"], ["keeps", "frees"], ["keeps", undefined]] as const) {
    assert.deepEqual(warnings(discards, ...weekly), []);
  }
  assert.deepEqual(warnings(["keeps"]), []);
});

Deno.test("readServeConfig() accepts the profile of a later version, and refuses a question with a typing error", () => {
  const vocabulary = { rose: true, fileCopy: true };
  const profile = { name: "r", version: "7.24", vocabulary, poolFilesystem: "btrfs", answers: {} } as const;
  const settle = (answers: object) => {
    const text = JSON.stringify({ ...JSON.parse(formatProfile(profile)), answers });
    return readServeConfig([...node, "--router-profile", "/a"], none, () => text).node?.fenceSettleMs;
  };
  assert.equal(settle({ disksLate: 100_000, ofTomorrow: "yes" }), 160_000);
  assert.throws(
    () => settle({ diskLate: 100_000 }),
    (error) =>
      error instanceof FlagError && /no question diskLate; did you mean disksLate\?/.test(error.message),
  );
});
