import assert from "node:assert/strict";
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
      vocabulary: { rose: true, nqn: true, fileCopy: true, subvolumes: true },
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

Deno.test("readServeConfig() accepts the profile of a later version, and refuses a question with a typing error", () => {
  const vocabulary = { rose: true, nqn: true, fileCopy: true, subvolumes: true };
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
