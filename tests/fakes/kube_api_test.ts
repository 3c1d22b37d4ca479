import assert from "node:assert/strict";
import { FakeKubeApi } from "./kube_api.ts";

const volumes = "/api/v1/persistentvolumes";

async function send(
  api: FakeKubeApi,
  method: string,
  path: string,
  body?: unknown,
  type = "application/json",
) {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": type } };
  const response = await fetch(api.url + path, { method, ...init });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

Deno.test("FakeKubeApi lists in pages whose order is that of names, and tells when there are no more", async () => {
  await using api = new FakeKubeApi();
  for (const name of ["c", "a", "b"]) {
    api.put(volumes, { metadata: { name, labels: { odd: String(name !== "b") } } });
  }
  const first = await send(api, "GET", `${volumes}?limit=2`);
  assert.deepEqual(first.body.items.map((item: { metadata: { name: string } }) => item.metadata.name), [
    "a",
    "b",
  ]);
  const rest = await send(api, "GET", `${volumes}?limit=2&continue=${first.body.metadata.continue}`);
  assert.deepEqual(rest.body.items.map((item: { metadata: { name: string } }) => item.metadata.name), ["c"]);
  assert.equal(rest.body.metadata.continue, undefined);
  assert.equal((await send(api, "GET", `${volumes}?labelSelector=odd=true`)).body.items.length, 2);
  api.expireLists();
  assert.equal((await send(api, "GET", `${volumes}?continue=${first.body.metadata.continue}`)).status, 410);
});

Deno.test("FakeKubeApi lists what is in every namespace", async () => {
  await using api = new FakeKubeApi();
  for (const namespace of ["x", "y"]) {
    api.put(`/api/v1/namespaces/${namespace}/pods`, { metadata: { name: `p-${namespace}`, namespace } });
  }
  assert.equal((await send(api, "GET", "/api/v1/pods")).body.items.length, 2);
  assert.equal((await send(api, "GET", "/api/v1/namespaces/x/pods")).body.items.length, 1);
});

Deno.test("FakeKubeApi refuses what a real one does: what is there, what is not, and what was changed since", async () => {
  await using api = new FakeKubeApi();
  const made = await send(api, "POST", volumes, { metadata: { name: "v" } });
  assert.equal(made.status, 200);
  const again = await send(api, "POST", volumes, { metadata: { name: "v" } });
  assert.deepEqual([again.status, again.body.reason], [409, "AlreadyExists"]);
  assert.equal((await send(api, "GET", `${volumes}/w`)).status, 404);
  assert.equal((await send(api, "PUT", `${volumes}/v`, made.body)).status, 200);
  const late = await send(api, "PUT", `${volumes}/v`, made.body);
  assert.deepEqual([late.status, late.body.reason], [409, "Conflict"]);
  assert.equal((await send(api, "PATCH", `${volumes}/v`, {}, "application/json")).status, 415);
});

Deno.test("FakeKubeApi lets in only who may come, for what is allowed", async () => {
  await using api = new FakeKubeApi();
  api.put(volumes, { metadata: { name: "v" } });
  api.rules = [{ apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get"], resourceNames: ["v"] }];
  assert.equal((await send(api, "GET", `${volumes}/v`)).status, 200);
  assert.equal((await send(api, "GET", `${volumes}/w`)).status, 403);
  assert.equal((await send(api, "GET", volumes)).status, 403);
  api.token = "t";
  assert.equal((await send(api, "GET", `${volumes}/v`)).status, 401);
});

Deno.test("FakeKubeApi goes wrong as often as it is told to", async () => {
  await using api = new FakeKubeApi();
  api.faults.push({ match: /^GET/, status: 429, retryAfterSeconds: 3, times: 1 });
  api.faults.push({ match: /^POST/, lostAnswer: true, times: 1 });
  const refused = await send(api, "GET", volumes);
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "3"]);
  assert.equal((await send(api, "GET", volumes)).status, 200);
  assert.equal((await send(api, "POST", volumes, { metadata: { name: "v" } })).status, 504);
  assert.notEqual(api.get(volumes, "v"), undefined);
  assert.equal(api.count(/^GET/), 2);
});
