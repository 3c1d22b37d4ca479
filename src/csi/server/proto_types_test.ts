import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import type { ControllerRpcs, CreateVolumeRequest } from "../generated/csi.ts";
import { METHOD_MESSAGES, SECRET_FIELDS } from "../generated/secrets.ts";
import { type Definition, LOADER_OPTIONS, type Sent } from "./proto.ts";

const PROTO = fileURLToPath(new URL("../../../proto/csi.proto", import.meta.url));

Deno.test("LOADER_OPTIONS load csi.proto into the objects that the generated types describe", () => {
  const definition = loadSync(PROTO, LOADER_OPTIONS);
  const { CreateVolume } = definition["csi.v1.Controller"] as unknown as Definition<ControllerRpcs>;
  const request: Sent<CreateVolumeRequest> = {
    name: "pvc-1",
    capacityRange: { requiredBytes: "9007199254740993" },
    volumeCapabilities: [{ block: {}, accessMode: { mode: "SINGLE_NODE_WRITER" } }],
  };
  const read: CreateVolumeRequest = CreateVolume.requestDeserialize(
    CreateVolume.requestSerialize(request),
  );
  assert.equal(read.capacityRange?.requiredBytes, "9007199254740993");
  assert.equal(read.capacityRange?.limitBytes, "0");
  assert.equal(read.volumeCapabilities[0]?.accessType, "block");
  assert.equal(read.volumeCapabilities[0]?.accessMode?.mode, "SINGLE_NODE_WRITER");
  assert.deepEqual(read.secrets, {});
  assert.equal(read.volumeContentSource, null);
});

Deno.test("csi.proto loads with the google types that it imports", () => {
  const definition = loadSync(PROTO, LOADER_OPTIONS);
  for (
    const name of ["google.protobuf.Timestamp", "google.protobuf.BoolValue", "google.protobuf.FieldOptions"]
  ) {
    assert.equal(definition[name]?.format, "Protocol Buffer 3 DescriptorProto", name);
  }
});

Deno.test("METHOD_MESSAGES names every method that the server can be asked for", () => {
  const definition = loadSync(PROTO, LOADER_OPTIONS);
  const paths = Object.values(definition).flatMap((entry) => "format" in entry ? [] : Object.values(entry))
    .map((method) => method.path).sort();
  assert.equal(paths.length, 36);
  assert.deepEqual([...METHOD_MESSAGES.keys()].sort(), paths);
});

Deno.test("SECRET_FIELDS covers the secrets of every request that has a field of that name", () => {
  const definition = loadSync(PROTO, LOADER_OPTIONS);
  for (const [path, { request }] of METHOD_MESSAGES) {
    const [, service = "", method = ""] = path.split("/");
    const entry = definition[service];
    assert.ok(entry !== undefined && !("format" in entry), path);
    const type = entry[method]?.requestType as MessageTypeDefinition<object, object>;
    const hasSecrets = (type.type as { field: { name: string }[] }).field.some(({ name }) =>
      name === "secrets"
    );
    assert.deepEqual(SECRET_FIELDS.get(request), hasSecrets ? ["secrets"] : undefined, request);
  }
});
