import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LOADER_OPTIONS } from "../../src/csi/server/proto.ts";
import { loadDefinitions, readSecrets, type Secrets } from "./secrets.ts";

const PROTO = fileURLToPath(new URL("../../proto/csi.proto", import.meta.url));
const HEAD = `syntax = "proto3";
package csi.v1;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { bool csi_secret = 1059; }
`;

Deno.test("readSecrets() finds every mark in csi.proto", () => {
  const marks = Deno.readTextFileSync(PROTO).match(/\(csi_secret\) = true/g)?.length;
  const { fields } = readSecrets(loadDefinitions(PROTO, LOADER_OPTIONS));
  assert.equal([...fields.values()].flat().length, marks);
});

Deno.test("readSecrets() finds both messages of a method by its gRPC path", () => {
  assert.deepEqual(
    readSecrets(loadDefinitions(PROTO, LOADER_OPTIONS)).methods.get("/csi.v1.Identity/Probe"),
    {
      request: "csi.v1.ProbeRequest",
      response: "csi.v1.ProbeResponse",
    },
  );
});

Deno.test("readSecrets() names fields in camelCase and accepts the mark's long name too", () => {
  const secrets = read(`message Outer {
    message Inner { string pass_word = 1 [(csi.v1.csi_secret) = true]; string user = 2; }
    bytes key_file = 1 [(csi_secret) = true];
    string open = 2 [(csi_secret) = false];
  }`);
  assert.deepEqual([...secrets.fields], [
    ["csi.v1.Outer", ["keyFile"]],
    ["csi.v1.Outer.Inner", ["passWord"]],
  ]);
});

Deno.test("readSecrets() throws when a secret is below the top level of a message", () => {
  const source = `message Login { string token = 1 [(csi_secret) = true]; }
    message Request { map<string, Login> logins = 1; }`;
  assert.throws(() => read(source), /csi\.v1\.Request\.logins carries secrets below the top level/);
});

function read(source: string): Secrets {
  const folder = Deno.makeTempDirSync({ prefix: "rds-csi-test-" });
  try {
    const path = join(folder, "test.proto");
    Deno.writeTextFileSync(path, HEAD + source);
    return readSecrets(loadDefinitions(path, LOADER_OPTIONS));
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}
