import assert from "node:assert/strict";
import { join } from "node:path";
import { LOADER_OPTIONS } from "../../src/csi/server/proto.ts";
import { loadDefinitions } from "./secrets.ts";
import { renderTypes } from "./types.ts";

Deno.test("renderTypes() writes the messages of the services, as received, and nothing else", () => {
  const types = render(`
    service Disks { rpc Make (MakeRequest) returns (MakeResponse) {} }
    message MakeRequest {
      message Size { int64 required_bytes = 1; }
      enum Kind { UNKNOWN = 0; FILE = 1; }
      Size size = 1;
      Kind kind = 2;
      repeated string flags = 3;
      map<string, string> parameters = 4;
      oneof source { Size empty = 5; string volume_id = 6; }
    }
    message MakeResponse {}
    message Unused {}`);
  assert.equal(
    types,
    `// Generated from test.proto by tools/proto/generate.ts: every message as it is received.

export interface DisksRpcs {
  Make: { request: MakeRequest; response: MakeResponse };
}

export interface MakeRequest {
  size: MakeRequest_Size | null;
  kind: MakeRequest_Kind;
  flags: string[];
  parameters: Record<string, string>;
  empty?: MakeRequest_Size | null;
  volumeId?: string;
  source?: "empty" | "volumeId";
}

export type MakeRequest_Kind =
  | "UNKNOWN"
  | "FILE";

export interface MakeRequest_Size {
  requiredBytes: string;
}

export interface MakeResponse {}
`,
  );
});

Deno.test("renderTypes() throws on a field whose type it does not know", () => {
  const source = `service Disks { rpc Make (Key) returns (Key) {} } message Key { bytes secret = 1; }`;
  assert.throws(() => render(source), /test\.v1\.Key\.secret is of the type bytes/);
});

function render(source: string): string {
  const folder = Deno.makeTempDirSync({ prefix: "rds-csi-test-" });
  try {
    const path = join(folder, "test.proto");
    Deno.writeTextFileSync(path, `syntax = "proto3"; package test.v1; ${source}`);
    return renderTypes(loadDefinitions(path, LOADER_OPTIONS), "test.proto", ["test.v1.Disks"]);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}
