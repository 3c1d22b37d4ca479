import assert from "node:assert/strict";
import { parseListenAddress } from "./listen_address.ts";

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

Deno.test("parseListenAddress() takes nothing else", () => {
  for (const text of ["", "9809", ":", ":x", ":65536", "::1:80", "http://a:80", "a b:80", "a:80/", "[::1]"]) {
    assert.equal(parseListenAddress(text), undefined, text);
  }
});
