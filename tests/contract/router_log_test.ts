// What the driver logs about the router on its own.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { rejectsWith } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

interface ProbeSession {
  readonly level: string;
  readonly [field: string]: unknown;
}

function lines(stack: Stack): ProbeSession[] {
  return stack.log.map((line) => JSON.parse(line) as ProbeSession).filter((line) =>
    line.level.toLowerCase() !== "debug"
  );
}

function probe(stack: Stack): Promise<unknown> {
  return stack.clients.identity.call("Probe", {});
}

const unfit = [
  ["no-rose", /rose-storage.*install it/],
  ["ros-7.20", /RouterOS is too old.*version=7\.20.*needed=7\.21.*upgrade it/],
] as const;

for (const [profile, reason] of unfit) {
  Deno.test(`a router that cannot be used (${profile}) is logged once per connection, with what to do`, async () => {
    const played = profile === "ros-7.20"
      ? { ...getProfile("ros-7.21"), version: "7.20.8 (long-term)" }
      : profile;
    await using stack = await startStack({ simulator: { profile: played } });
    for (let time = 0; time < 3; time++) await rejectsWith(status.FAILED_PRECONDITION, probe(stack), reason);
    const reported = lines(stack).filter((line) => line.level.toLowerCase() === "error");
    assert.equal(reported.length, 1, JSON.stringify(reported));
    assert.match(JSON.stringify(reported[0]), reason);
  });
}

Deno.test("the log says once which RouterOS it is", async () => {
  await using stack = await startStack();
  for (let time = 0; time < 2; time++) await probe(stack);
  const reported = lines(stack).filter((line) => "supported" in line);
  assert.equal(reported.length, 1, JSON.stringify(reported));
  assert.ok(reported[0]!.level.toLowerCase().startsWith("info"));
  assert.ok(String(reported[0]!.version).startsWith("7.24"));
});

Deno.test("the log warns once of a RouterOS that is exploited through SSH, which is used all the same", async () => {
  for (const [version, isExploited] of [["7.24.1 (stable)", true], ["7.24.4 (stable)", false]] as const) {
    const profile = { ...getProfile("ros-7.24"), version };
    await using stack = await startStack({ simulator: { profile } });
    for (let time = 0; time < 2; time++) await probe(stack);
    const warned = lines(stack).filter((line) => /holes in SSH/.test(JSON.stringify(line)));
    assert.equal(warned.length, isExploited ? 1 : 0, JSON.stringify(warned));
  }
});

Deno.test("the log warns once of a profile that was probed with another RouterOS, and of no other", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    const path = `${folder}/profile.json`;
    for (const name of ["ros-7.21", "ros-7.24"] as const) {
      await Deno.writeTextFile(path, formatProfile({ ...getProfile(name), answers: {} }));
      await using stack = await startStack({ flags: ["--router-profile", path] });
      for (let time = 0; time < 2; time++) await probe(stack);
      const warned = lines(stack).filter((line) => /profile is of another/.test(JSON.stringify(line)));
      assert.equal(warned.length, name === "ros-7.21" ? 1 : 0, JSON.stringify(warned));
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
