import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import { readClusterUid } from "./cluster.ts";

function apiThat(answer: (asked: number) => unknown): KubernetesApi & { asked: number } {
  const api = {
    asked: 0,
    // deno-lint-ignore require-await -- a rejection, not a throw
    request: async <T>() => answer(++api.asked) as T,
  };
  return api;
}

Deno.test("readClusterUid() asks again while the API server does not answer", async () => {
  const clock = new FakeClock();
  const api = apiThat((asked) => {
    if (asked < 3) throw new ApiError(0, "no answer");
    return { metadata: { uid: "u-1" } };
  });
  const uid = readClusterUid(api, clock, new AbortController().signal);
  await clock.advance(60_000);
  assert.equal(await uid, "u-1");
  assert.equal(api.asked, 3);
});

Deno.test("readClusterUid() throws unavailable after a minute, and says what would help", async () => {
  const clock = new FakeClock();
  const api = apiThat(() => {
    throw new ApiError(403, "may not get namespaces");
  });
  const uid = readClusterUid(api, clock, new AbortController().signal);
  const refused = assert.rejects(uid, {
    kind: "unavailable",
    message: /may not get namespaces; set --cluster-id/,
  });
  await clock.advance(60_000);
  await refused;
});

Deno.test("readClusterUid() ends with its signal", async () => {
  const stop = new AbortController();
  const api = apiThat(() => {
    throw new ApiError(0, "no answer");
  });
  const uid = readClusterUid(api, new FakeClock(), stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(uid, { message: "stopped" });
});
