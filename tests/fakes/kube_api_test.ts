import assert from "node:assert/strict";
import { FakeKubeApi } from "./kube_api.ts";

const volumes = "/api/v1/persistentvolumes";

/** If it accepted every client, no test could show that the chart's rules are enough. */
Deno.test("FakeKubeApi accepts only allowed clients, for allowed calls", async () => {
  await using api = new FakeKubeApi();
  const ask = async (path: string) => {
    const response = await fetch(api.url + path);
    await response.body?.cancel();
    return response.status;
  };
  api.put(volumes, { metadata: { name: "v" } });
  api.rules = [{ apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get"], resourceNames: ["v"] }];
  assert.deepEqual([await ask(`${volumes}/v`), await ask(`${volumes}/w`), await ask(volumes)], [
    200,
    403,
    403,
  ]);
  api.token = "t";
  assert.equal(await ask(`${volumes}/v`), 401);
});
