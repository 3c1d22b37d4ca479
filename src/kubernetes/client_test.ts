import assert from "node:assert/strict";
import { systemClock } from "../host/clock.ts";
import { FakeKubeApi } from "../../tests/fakes/kube_api.ts";
import { kubeTls } from "../../tests/fakes/kube_tls.ts";
import { rejectsWith } from "../../tests/fakes/volume_errors.ts";
import { ApiError } from "./api.ts";
import { KubernetesClient } from "./client.ts";
import { listKept, pageSize } from "./objects.ts";

const volumes = "/api/v1/persistentvolumes";

async function withClient(
  work: (client: KubernetesClient, api: FakeKubeApi) => Promise<void>,
): Promise<void> {
  await using api = new FakeKubeApi();
  api.token = "secret";
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  await Deno.writeTextFile(file, api.kubeconfig());
  const client = await KubernetesClient.open({ kubeconfig: file }, systemClock);
  try {
    await work(client, api);
  } finally {
    client.close();
    await Deno.remove(file);
  }
}

function seed(api: FakeKubeApi, count: number): void {
  for (let i = 0; i < count; i++) {
    api.put(volumes, { metadata: { name: `pv-${String(i).padStart(5, "0")}` } });
  }
}

Deno.test("request() logs in with the token of the kubeconfig, and knows the namespace of its context", async () => {
  await withClient(async (client, api) => {
    seed(api, 1);
    const volume = await client.request<{ metadata: { name: string } }>({
      method: "GET",
      path: `${volumes}/pv-00000`,
    });
    assert.equal(volume.metadata.name, "pv-00000");
    assert.equal(client.namespace, "storage");
    api.token = "another";
    const refused = client.request({ method: "GET", path: volumes });
    await assert.rejects(refused, (error) => ApiError.is(error, 401) && error.reason === "Unauthorized");
  });
});

Deno.test("request() sends a merge patch, which removes what is null and keeps the rest", async () => {
  await withClient(async (client, api) => {
    api.put(volumes, { metadata: { name: "pv", annotations: { a: "1", b: "2" } } });
    const body = { metadata: { annotations: { a: null, c: "3" } } };
    await client.request({ method: "PATCH", path: `${volumes}/pv`, body });
    assert.deepEqual(api.get(volumes, "pv")?.metadata.annotations, { b: "2", c: "3" });
    const outdated = { metadata: { resourceVersion: "1", annotations: { c: "4" } } };
    const conflict = client.request({ method: "PATCH", path: `${volumes}/pv`, body: outdated });
    await assert.rejects(conflict, (error) => ApiError.is(error, 409) && error.reason === "Conflict");
  });
});

Deno.test("request() reports how long the server asks clients to wait", async () => {
  await withClient(async (client, api) => {
    api.faults.push({ match: /^GET/, status: 429, retryAfterSeconds: 7 });
    await assert.rejects(
      client.request({ method: "GET", path: volumes }),
      (error) => ApiError.is(error, 429) && error.retryAfterMs === 7_000,
    );
  });
});

Deno.test("request() gives up an answer that takes too long, and one that its caller no longer wants", async () => {
  await withClient(async (client, api) => {
    api.faults.push({ match: /^GET/, delayMs: 300, times: 2 });
    await assert.rejects(
      client.request({ method: "GET", path: volumes, timeoutMs: 20 }),
      (error) => ApiError.is(error, 0) && error.message.includes("no answer within 0.02 s"),
    );
    const caller = new AbortController();
    const call = client.request({ method: "GET", path: volumes, signal: caller.signal });
    caller.abort(new Error("gone"));
    await assert.rejects(call, (error) => ApiError.is(error, 0) && error.message.includes("gone"));
  });
});

Deno.test("request() has a status of 0 without an answer, or when the answer is not JSON", async () => {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response("<html>"));
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const context = { name: "x", context: { cluster: "x", user: "x" } };
  const url = `http://127.0.0.1:${server.addr.port}`;
  const clusters = [{ name: "x", cluster: { server: url, "insecure-skip-tls-verify": true } }];
  const config = {
    clusters,
    "users": [{ name: "x", user: {} }],
    "contexts": [context],
    "current-context": "x",
  };
  await Deno.writeTextFile(file, JSON.stringify(config));
  const client = await KubernetesClient.open({ kubeconfig: file }, systemClock);
  try {
    const call = { method: "GET", path: volumes } as const;
    await assert.rejects(client.request(call), (error) => ApiError.is(error, 0));
    await server.shutdown();
    await assert.rejects(client.request(call), (error) => ApiError.is(error, 0));
  } finally {
    client.close();
    await Deno.remove(file);
  }
});

Deno.test("open() refuses a missing configuration, and one that names no cluster", async () => {
  const open = (kubeconfig: string) => () => KubernetesClient.open({ kubeconfig }, systemClock);
  await assert.rejects(open("/nowhere/config"), { name: "VolumeError", kind: "invalid" });
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  try {
    await Deno.writeTextFile(file, "contexts: []\nclusters: []\nusers: []\n");
    await assert.rejects(open(file), { name: "VolumeError", kind: "invalid", message: /names no cluster/ });
  } finally {
    await Deno.remove(file);
  }
});

for (
  const [what, change, reason] of [
    ["is empty", () => "\n", /: the file is empty$/],
    ["is another text", () => "hello", /the file is no kubeconfig/],
    ["is no YAML", () => "token: secret\nx: [", /the file is no YAML: line=2$/],
    ...[
      "current-context: x\ncontexts: [null]",
      "current-context: x\ncontexts: [{ name: x }]",
      "clusters: [null]\ncurrent-context: x\ncontexts: [{ name: x, context: { cluster: c } }]",
      "clusters: [{ name: c, cluster: { server: 5 } }]\ncurrent-context: x\ncontexts: [{ name: x, context: { cluster: c } }]",
    ].map((text): [string, () => string, RegExp] => [
      `has ${text.slice(0, 40)}`,
      () => text,
      /its content has not the form of a kubeconfig$|is missing$/,
    ]),
    [
      "names a server without TLS",
      (text) => text.replace(/"server":"[^"]*"/, '"server":"http://h:8080"'),
      /no TLS/,
    ],
    [
      "names a server without its scheme",
      (text) => text.replace(/"server":"[^"]*"/, '"server":"h:6443"'),
      /no URL/,
    ],
    [
      "lacks the user of its context",
      (text) => text.replace('"name":"u"', '"name":"v"'),
      /not there: user=u$/,
    ],
  ] as (readonly [string, (text: string) => string, RegExp])[]
) {
  Deno.test(`open() refuses a kubeconfig that ${what} in words of its own`, async () => {
    await using api = new FakeKubeApi(kubeTls);
    const file = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
    try {
      const text = api.kubeconfig().replace(',"insecure-skip-tls-verify":true', "");
      await Deno.writeTextFile(file, change(text));
      await rejectsWith(KubernetesClient.open({ kubeconfig: file }, systemClock), "invalid", reason);
    } finally {
      await Deno.remove(file);
    }
  });
}

Deno.test("request() logs in with the token file of the kubeconfig as it is now", async () => {
  await using api = new FakeKubeApi(kubeTls);
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const config = JSON.parse(api.kubeconfig());
  config.users = [{ name: "u", user: { token: "old", tokenFile: "token" } }];
  await Deno.writeTextFile(`${folder}/config`, JSON.stringify(config));
  const client = await KubernetesClient.open({ kubeconfig: `${folder}/config` }, systemClock);
  try {
    for (const token of ["first", "second"]) {
      await Deno.writeTextFile(`${folder}/token`, `${token}\n`);
      api.token = token;
      await client.request({ method: "GET", path: volumes });
    }
  } finally {
    client.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("request() says in words why the API server cannot be reached", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    await Deno.writeTextFile(`${folder}/token`, "t");
    await Deno.writeTextFile(`${folder}/ca.crt`, kubeTls.ca);
    const client = await KubernetesClient.open({ host: "127.0.0.1", port: `${port}`, folder }, systemClock);
    await assert.rejects(
      client.request({ method: "GET", path: volumes }),
      (error: Error) =>
        /^Cannot reach the API server because the connection was refused: GET /.test(error.message),
    );
    client.close();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("request() logs in with a pod's token as it is now, and trusts only the pod's certificate authority", async () => {
  await using api = new FakeKubeApi(kubeTls);
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, text);
  const client = await KubernetesClient.open(
    { host: "127.0.0.1", port: String(api.port), folder },
    systemClock,
  );
  const call = { method: "GET", path: volumes } as const;
  const refused = (status: number, part: string) =>
    assert.rejects(
      client.request(call),
      (error) => ApiError.is(error, status) && error.message.includes(part),
    );
  try {
    // Neither of the two files is there, and both are read at once.
    await refused(0, `there is no such file: ${folder}/`);
    for (const token of ["first", "renewed"]) {
      api.token = token;
      await write("token", `${token}\n`);
      await write("ca.crt", kubeTls.ca);
      assert.equal((await client.request<{ kind: string }>(call)).kind, "List");
    }
    api.token = "another";
    await refused(401, "401");
    // The connections that are open are trusted.
    client.close();
    await write("ca.crt", "");
    await refused(0, "certificate");
  } finally {
    client.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("open() returns a pod's own namespace, or none", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const open = () => KubernetesClient.open({ host: "fd00::1", port: "443", folder }, systemClock);
  try {
    assert.equal((await open()).namespace, "");
    await Deno.writeTextFile(`${folder}/namespace`, "csi-system\n");
    assert.equal((await open()).namespace, "csi-system");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("listKept() reads a thousand objects in pages, and keeps only what it is told to", async () => {
  await withClient(async (client, api) => {
    seed(api, 1_000);
    const names = await listKept(
      client,
      { path: volumes },
      ({ metadata }: { metadata: { name: string } }) =>
        metadata.name.endsWith("7") ? metadata.name : undefined,
    );
    assert.equal(names.length, 100);
    assert.equal(api.count(/^GET/), 1_000 / pageSize);
  });
});

Deno.test("listKept() starts again when its pages go out of date, and not forever", async () => {
  await withClient(async (client, api) => {
    seed(api, pageSize + 1);
    let seen = 0;
    const list = () =>
      listKept(client, { path: volumes }, () => {
        if (++seen === pageSize) api.expireLists();
        return true;
      });
    assert.equal((await list()).length, pageSize + 1);
    assert.equal(seen, 2 * pageSize + 1);
    api.faults.push({ match: /^GET/, status: 410 });
    await assert.rejects(list(), (error) => ApiError.is(error, 410));
  });
});
