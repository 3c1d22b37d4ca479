import assert from "node:assert/strict";
import { FakeKubeApi } from "./kube_api.ts";

const volumes = "/api/v1/persistentvolumes";

/** If it let in whoever comes, no test could show that the chart's rules are enough. */
Deno.test("FakeKubeApi lets in only who may come, for what is allowed", async () => {
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
