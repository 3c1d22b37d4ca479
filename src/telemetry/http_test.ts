import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { systemClock } from "../host/clock.ts";
import { parseListenAddress, serveTelemetry, type TelemetryPages } from "./http.ts";
import { httpLimits } from "./http_server.ts";
import { parseStatusQuery } from "./status/model.ts";
import { StatusStore } from "./status/status_store.ts";

const local = { hostname: "127.0.0.1", port: 0 };

const empty = new StatusStore({ driverName: "a", version: "1", roles: ["node"], routers: {} }, {
  now: () => 0,
});
const status = (parameters: URLSearchParams) => {
  const query = parseStatusQuery(parameters);
  const result = { failure: undefined, unreadiness: undefined };
  return Promise.resolve({ query, status: empty.read(query, result) });
};

const quiet: TelemetryPages = {
  status,
  metrics: () => "",
  failure: () => Promise.resolve(undefined),
  unreadiness: () => Promise.resolve(undefined),
};

Deno.test("serveTelemetry() serves metrics, health and readiness, and nothing else", async () => {
  let failure: string | undefined;
  let unreadiness: string | undefined = "not yet";
  const server = serveTelemetry(local, {
    status,
    metrics: () => "acts_total 1\n",
    failure: () => Promise.resolve(failure),
    unreadiness: () => Promise.resolve(unreadiness),
  }, systemClock);
  const get = async (path: string, method = "GET") => {
    const response = await fetch(`${server.url}${path}`, { method });
    const text = await response.text();
    return [response.status, text, response.headers.get("content-type")];
  };
  try {
    const type = "text/plain; version=0.0.4; charset=utf-8";
    assert.deepEqual(await get("/metrics"), [200, "acts_total 1\n", type]);
    assert.deepEqual((await get("/metrics?x=1"))[0], 200);
    assert.deepEqual((await get("/healthz")).slice(0, 2), [200, "ok\n"]);
    assert.deepEqual((await get("/readyz")).slice(0, 2), [503, "not yet\n"]);
    unreadiness = undefined;
    assert.deepEqual((await get("/readyz")).slice(0, 2), [200, "ok\n"]);
    failure = "gone";
    assert.deepEqual((await get("/healthz")).slice(0, 2), [503, "gone\n"]);
    assert.deepEqual((await get("/healthz", "HEAD")).slice(0, 2), [503, ""]);
    assert.deepEqual((await get("/favicon.ico"))[0], 404);
    for (const path of ["/", "/status.json", "/metrics", "/log-level"]) {
      for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
        assert.deepEqual((await get(path, method))[0], 405, `${method} ${path}`);
      }
    }
    assert.deepEqual((await get("/metrics", "POST"))[0], 405);
  } finally {
    await server.stop();
  }
});

Deno.test("serveTelemetry() throws when the port is in use", async () => {
  const server = serveTelemetry(local, quiet, systemClock);
  try {
    const port = Number(new URL(server.url).port);
    assert.throws(() => serveTelemetry({ ...local, port }, quiet, systemClock), Deno.errors.AddrInUse);
  } finally {
    await server.stop();
  }
});

Deno.test("stop() does not wait for a client that keeps its connection", async () => {
  const server = serveTelemetry(local, quiet, systemClock);
  const client = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(server.url).port) });
  try {
    await client.write(new TextEncoder().encode("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"));
    await client.read(new Uint8Array(1024));
    await server.stop();
  } finally {
    client.close();
  }
});

Deno.test("pages that are asked for at once are made one after the other, each after as long a rest as the last one took", async () => {
  const takesMs = 20;
  let spentMs = 0;
  const clock = new class extends FakeClock {
    override monotonicMs = () => this.now() + spentMs;
  }();
  const madeAt: number[] = [];
  const metrics = () => {
    madeAt.push(clock.now());
    spentMs += takesMs;
    return "";
  };
  const server = serveTelemetry(local, { ...quiet, metrics }, clock);
  try {
    let answered = 0;
    const asked = Array.from({ length: 6 }, async () => {
      await (await fetch(`${server.url}/metrics`)).body?.cancel();
      answered++;
    });
    while (answered < asked.length) {
      await clock.advance(1);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(asked);
    const rests = madeAt.slice(1).map((ms, index) => ms - madeAt[index]!);
    assert.ok(rests.every((ms) => ms >= takesMs), String(rests));
  } finally {
    await server.stop();
  }
});

Deno.test("a page that is never made keeps others waiting only as long as its client does", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const hangs = () => (asked++, new Promise<never>(() => {}));
  const server = serveTelemetry(local, { ...quiet, status: hangs }, clock);
  try {
    let isAnswered = false;
    const dropped = assert.rejects(fetch(server.url));
    while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(httpLimits.answerMs);
    await dropped;
    const other = fetch(`${server.url}/metrics`).then(async (answer) => {
      isAnswered = await answer.text() === "";
    });
    while (!isAnswered) {
      await clock.advance(100);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await other;
  } finally {
    await server.stop();
  }
});

Deno.test("the status page allows a browser to load and run nothing, and is not cached", async () => {
  const server = serveTelemetry(local, quiet, systemClock);
  try {
    const response = await fetch(server.url);
    const page = await response.text();
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; form-action 'self'/);
    const style = /<style>(.*)<\/style>/s.exec(page)![1]!;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
    assert.ok(policy.includes(new Uint8Array(digest).toBase64()), "the style is not the one that is allowed");
    assert.doesNotMatch(page, /<script|<link|<img|<iframe| on[a-z]+=| style=|https?:/i);
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(response.headers.get("content-type"), "text/html; charset=utf-8");
    const json = await fetch(`${server.url}/status.json`);
    assert.equal(json.headers.get("content-type"), "application/json; charset=utf-8");
    assert.equal((await json.json()).driver.driverName, "a");
  } finally {
    await server.stop();
  }
});

Deno.test("parseListenAddress() reads a host and a port", () => {
  const cases: readonly [string, string, number][] = [
    [":9809", "0.0.0.0", 9809],
    ["127.0.0.1:0", "127.0.0.1", 0],
    ["[::]:9809", "::", 9809],
    ["localhost:65535", "localhost", 65535],
  ];
  for (const [text, hostname, port] of cases) {
    assert.deepEqual(parseListenAddress(text), { hostname, port }, text);
  }
});

Deno.test("parseListenAddress() refuses everything else", () => {
  for (const text of ["", "9809", ":", ":x", ":65536", "::1:80", "http://a:80", "a b:80", "a:80/", "[::1]"]) {
    assert.equal(parseListenAddress(text), undefined, text);
  }
});
