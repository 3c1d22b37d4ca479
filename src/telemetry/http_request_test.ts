import assert from "node:assert/strict";
import { parseRequestHead } from "./http_request.ts";

Deno.test("parseRequestHead() reads method, path and query of HTTP/1", () => {
  const cases: readonly [string, string, string][] = [
    ["GET /metrics HTTP/1.1\r\nhost: a", "GET", "/metrics"],
    ["HEAD / HTTP/1.0", "HEAD", "/"],
    ["GET /?search=a%20b HTTP/1.1\nhost: a", "GET", "/?search=a%20b"],
    ["GET http://a:9809/healthz HTTP/1.1", "GET", "/healthz"],
    ["DELETE //b/metrics HTTP/1.1", "DELETE", "//b/metrics"],
  ];
  for (const [head, method, path] of cases) {
    const request = parseRequestHead(head);
    assert.ok(typeof request === "object", head);
    assert.deepEqual([request.method, request.url.pathname + request.url.search], [method, path], head);
  }
});

Deno.test("parseRequestHead() refuses HTTP/2 with 505 and all else with 400", () => {
  assert.equal(parseRequestHead("PRI * HTTP/2.0"), 505);
  for (
    const head of ["", "GET", "GET /", "get / HTTP/1.1", "GET  / HTTP/1.1", "GET * HTTP/1.1", "\u0016\u0003"]
  ) {
    assert.equal(parseRequestHead(head), 400, JSON.stringify(head));
  }
});
