import assert from "node:assert/strict";
import { formatProfile, parseProfile, type RouterProfile } from "./profile.ts";

const profile: RouterProfile = {
  name: "my router",
  version: "7.24 (stable)",
  poolFilesystem: "btrfs",
  answers: { limits: "enough", grow: "after-toggle", unexport: 0 },
};

Deno.test("parseProfile() reads what formatProfile() writes", () => {
  assert.deepEqual(parseProfile(formatProfile(profile, { copyReturns: "no /file copy" })), profile);
});

const written = JSON.parse(formatProfile(profile));
for (
  const [what, text, reason] of [
    ["no JSON", "{", /not JSON/],
    ["a list", "[]", /no object/],
    ["another format", JSON.stringify({ ...written, format: "2" }), /format/],
    ["no name", JSON.stringify({ ...written, name: undefined }), /no name/],
    ["a foreign file system", JSON.stringify({ ...written, poolFilesystem: "zfs" }), /poolFilesystem/],
    ["an answer that there is not", JSON.stringify({ ...written, answers: { grow: "up" } }), /grow/],
  ] as const
) {
  Deno.test(`parseProfile() throws for ${what}`, () => {
    assert.throws(
      () => parseProfile(text),
      (error) => error instanceof RangeError && reason.test(error.message),
    );
  });
}

Deno.test("parseProfile() ignores answers that only an earlier or a later version asks for, and reports them", () => {
  const others = { emptyFind: "silent", interleave: true, maxSessions: 20, ofTomorrow: { is: "an object" } };
  const text = JSON.stringify({ ...written, answers: { ...written.answers, ...others } });
  const passedOver: string[] = [];
  assert.deepEqual(parseProfile(text, (question) => passedOver.push(question)), profile);
  assert.deepEqual(passedOver, Object.keys(others));
  assert.deepEqual(parseProfile(JSON.stringify({ ...written, later: 1 })), profile);
});
