import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeScratch } from "../../tests/support/scratch.ts";

const SCRIPT = fileURLToPath(new URL("verify.sh", import.meta.url));
const PROTO = fileURLToPath(new URL("../../proto/csi.proto", import.meta.url));
/** The first run may have to download and compile. */
const LIMIT_MS = 300_000;

const ignore = !hasGo();
if (ignore) {
  Deno.stderr.writeSync(
    new TextEncoder().encode("ignored: the tests of verify.sh need Go, which is not here\n"),
  );
}

Deno.test({
  name: "verify.sh passes on proto/csi.proto and says how much it compared",
  ignore,
  fn: async () => {
    const { code, stdout, stderr } = await verify(PROTO);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /5 services, 36 methods, 104 messages, 216 fields, 10 enums, 57 enum values/);
  },
});

const CHANGES: readonly { what: string; from: string; to: string; names: string }[] = [
  {
    what: "a field has another number",
    from: "int64 limit_bytes = 2;",
    to: "int64 limit_bytes = 3;",
    names: "message CapacityRange, field limit_bytes: number: 3 here, published 2",
  },
  {
    what: "a field is no longer csi_secret",
    from: "map<string, string> secrets = 7 [(csi_secret) = true];",
    to: "map<string, string> secrets = 7;",
    names: "message NodePublishVolumeRequest, field secrets: option (csi.v1.csi_secret): lacking here",
  },
  {
    what: "an enum value has another name",
    from: "INODES = 2;",
    to: "INODE = 2;",
    names: "message VolumeUsage, enum Unit, value INODES: lacking here",
  },
  {
    what: "a field has another type",
    from: "int64 max_volumes_per_node = 2;",
    to: "int32 max_volumes_per_node = 2;",
    names:
      "message NodeGetInfoResponse, field max_volumes_per_node: type: TYPE_INT32 here, published TYPE_INT64",
  },
  {
    what: "a field is optional in the manner of proto3",
    from: "string vendor_version = 2;",
    to: "optional string vendor_version = 2;",
    names: "message GetPluginInfoResponse, field vendor_version: proto3_optional",
  },
  {
    what: "a field is no longer repeated",
    from: "repeated string published_node_ids = 1;",
    to: "string published_node_ids = 1;",
    names:
      "message VolumeStatus, field published_node_ids: label: LABEL_OPTIONAL here, published LABEL_REPEATED",
  },
  {
    what: "a field left its oneof",
    from: "    VolumeSource volume = 2;\n  }",
    to: "  }\n    VolumeSource volume = 2;",
    names: "message VolumeContentSource, field volume: oneof: lacking here (published type)",
  },
  {
    what: "a number is no longer reserved",
    from: "reserved 11;",
    to: "",
    names: "message ControllerServiceCapability, message RPC, enum Type: reserved_range: lacking here",
  },
  {
    what: "a method no longer streams",
    from: "returns (stream GetMetadataDeltaResponse)",
    to: "returns (GetMetadataDeltaResponse)",
    names: "service SnapshotMetadata, method GetMetadataDelta: server_streaming: lacking here",
  },
  {
    what: "a service is no longer alpha",
    from: "option (alpha_service) = true;",
    to: "",
    names: "service SnapshotMetadata: option (csi.v1.alpha_service): lacking here",
  },
  {
    what: "a message was added",
    from: "message ProbeRequest {}",
    to: "message ProbeRequest {} message Extra { string name = 1; }",
    names: "message Extra: not in the published definition",
  },
];

for (const { what, from, to, names } of CHANGES) {
  Deno.test({
    name: `verify.sh fails and names the place when ${what}`,
    ignore,
    fn: async () => {
      const original = await Deno.readTextFile(PROTO);
      const changed = original.replace(from, to);
      assert.notEqual(changed, original);
      await withFolder(async (folder) => {
        const copy = join(folder, "csi.proto");
        await Deno.writeTextFile(copy, changed);
        const { code, stdout } = await verify(copy);
        assert.equal(code, 1);
        assert.ok(stdout.includes(names), stdout);
      });
    },
  });
}

Deno.test({
  name: "verify.sh fails when the file cannot be parsed",
  ignore,
  fn: async () => {
    await withFolder(async (folder) => {
      const copy = join(folder, "csi.proto");
      await Deno.writeTextFile(copy, "message {");
      const { code, stderr } = await verify(copy);
      assert.equal(code, 1);
      assert.match(stderr, /cannot parse/);
    });
  },
});

Deno.test("verify.sh says clearly that nothing was compared when Go is missing", async () => {
  const { code, stdout, stderr } = await verify(PROTO, { PATH: "/nonexistent" });
  assert.equal(code, 0);
  assert.match(stderr, /^SKIPPED: Go is not here/);
  assert.equal(stdout, "");
});

async function verify(
  file: string,
  env: Record<string, string> = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command("/bin/sh", {
    args: [SCRIPT, file],
    env,
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: decode(stdout), stderr: decode(stderr) };
}

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await use(folder);
}

function hasGo(): boolean {
  try {
    return new Deno.Command("go", { args: ["version"], stdout: "null", stderr: "null" }).outputSync().success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
