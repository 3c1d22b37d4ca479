import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { parseEndpoint } from "./endpoint.ts";

Deno.test("parseEndpoint() reads every form of a unix endpoint", () => {
  const table = [
    ["unix:///run/csi.sock", "/run/csi.sock"],
    ["unix:/run/csi.sock", "/run/csi.sock"],
    ["/run/csi.sock", "/run/csi.sock"],
    ["/csi.sock", "/csi.sock"],
    ["unix:////run//a b%23#?/csi.sock", "/run/a b%23#?/csi.sock"],
  ] as const;
  for (const [text, path] of table) assert.deepEqual(parseEndpoint(text), { kind: "unix", path }, text);
});

Deno.test("parseEndpoint() reads loopback TCP", () => {
  for (const port of [0, 1, 65535]) {
    assert.deepEqual(parseEndpoint(`tcp://127.0.0.1:${port}`), { kind: "tcp", host: "127.0.0.1", port });
  }
});

Deno.test("parseEndpoint() throws invalid naming what is allowed", () => {
  const table = [
    "",
    "csi.sock",
    "./csi.sock",
    "unix:csi.sock",
    "unix://csi.sock",
    "unix://run/csi.sock",
    "unix:",
    "unix://",
    "unix:///",
    "/",
    "/run/",
    "/run/../csi.sock",
    "/run/./csi.sock",
    "/run/..",
    "/run/csi\0.sock",
    "/run/csi\n.sock",
    "http://127.0.0.1:80",
    "tcp://0.0.0.0:80",
    "tcp://127.0.0.2:80",
    "tcp://localhost:80",
    "tcp://[::1]:80",
    "tcp://127.0.0.1",
    "tcp://127.0.0.1:",
    "tcp://127.0.0.1:65536",
    "tcp://127.0.0.1:-1",
    "tcp://127.0.0.1:80/",
    "tcp:127.0.0.1:80",
    "unix-abstract:csi",
    "@csi",
  ];
  for (const text of table) {
    assert.throws(() => parseEndpoint(text), (error) => {
      assert.ok(VolumeError.is(error, "invalid"), text);
      assert.match(error.message, /unix:\/\/\/path/, text);
      return true;
    }, text);
  }
});

Deno.test("parseEndpoint() accepts a path of 107 bytes and refuses one of 108, counted in bytes", () => {
  const path = (bytes: number) => `/run/${"x".repeat(bytes - 5)}`;
  assert.equal(parseEndpoint(path(107)).kind, "unix");
  assert.throws(() => parseEndpoint(path(108)), /108 bytes and a socket has 107/);
  assert.throws(() => parseEndpoint(`/run/${"é".repeat(52)}`), /109 bytes/);
});

Deno.test("parseEndpoint() refuses a short name in a folder that leaves no room for the temporary one", () => {
  assert.throws(() => parseEndpoint(`/${"x".repeat(99)}/s`), /109 bytes/);
});
