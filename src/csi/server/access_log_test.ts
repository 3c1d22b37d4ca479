import assert from "node:assert/strict";
import { SECRET_FIELDS } from "../generated/secrets.ts";
import { type CallRecord, logCall, redactRequest } from "./access_log.ts";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";

Deno.test("redactRequest() keeps public fields and redacts those marked secret", () => {
  const request = {
    name: "pvc-1",
    parameters: { backend: "a" },
    secrets: { user: "s3cret", key: "s3cret" },
    capacityRange: { requiredBytes: "1073741824" },
    accessibilityRequirements: null,
  };
  assert.deepEqual(redactRequest("/csi.v1.Controller/CreateVolume", request), {
    name: "pvc-1",
    parameters: { backend: "a" },
    secrets: "[redacted]",
    capacityRange: { requiredBytes: "1073741824" },
  });
  assert.equal(request.secrets.user, "s3cret");
});

Deno.test("redactRequest() redacts mount flags wherever a capability is", () => {
  const volumeCapability = {
    mount: { fsType: "ext4", mountFlags: ["password=s3cret"] },
    accessType: "mount",
  };
  const table = [
    ["/csi.v1.Node/NodeStageVolume", { volumeCapability }],
    ["/csi.v1.Controller/CreateVolume", { volumeCapabilities: [volumeCapability] }],
  ] as const;
  for (const [path, request] of table) {
    const printed = JSON.stringify(redactRequest(path, request));
    assert.doesNotMatch(printed, /s3cret/);
    assert.match(printed, /"fsType":"ext4"/);
  }
});

Deno.test("redactRequest() prints nothing of the request of an unknown method", () => {
  assert.equal(redactRequest("/csi.v2.Node/Other", { token: "s3cret" }), "[redacted]");
});

Deno.test("redactRequest() redacts every field that the specification marks, in every request", () => {
  assert.ok(SECRET_FIELDS.size > 10);
  for (const [message, fields] of SECRET_FIELDS) {
    const name = message.replace(/^csi\.v1\.(.*)Request$/, "$1");
    const service = ["Controller", "Node", "GroupController", "SnapshotMetadata"].find((candidate) =>
      redactRequest(`/csi.v1.${candidate}/${name}`, {}) !== "[redacted]"
    );
    assert.ok(service !== undefined, `no method takes ${message}`);
    const request = Object.fromEntries(fields.map((field) => [field, { key: "s3cret" }]));
    assert.doesNotMatch(
      JSON.stringify(redactRequest(`/csi.v1.${service}/${name}`, request)),
      /s3cret/,
      message,
    );
  }
});

const levels: readonly (readonly [code: CallRecord["code"], changing: boolean, level: string])[] = [
  ["OK", true, "info"],
  ["OK", false, "debug"],
  ["UNAVAILABLE", true, "warn"],
  ["FAILED_PRECONDITION", true, "warn"],
  ["NOT_FOUND", false, "debug"],
  ["INTERNAL", true, "error"],
  ["INTERNAL", false, "error"],
  ["ABORTED", true, "info"],
  ["CANCELLED", true, "info"],
];

for (const [code, changing, level] of levels) {
  Deno.test(`logCall() logs ${code} of a call that ${changing ? "changes something" : "reads"} at ${level}`, () => {
    const logged: string[] = [];
    const at = (name: string) => () => void logged.push(name);
    const log: Logger = {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      with: () => log,
    };
    logCall(log, {
      requestId: "1",
      path: "/x",
      changing,
      volumeId: undefined,
      code,
      durationMs: 1,
      error: undefined,
    });
    assert.deepEqual(logged, [level]);
  });
}

Deno.test("logCall() logs a fault of the driver with its stack, though the call says only that it may be repeated", () => {
  const bug = new TypeError("x is undefined");
  const internal = new VolumeError("internal", "Cannot finish", { cause: bug });
  const error = new VolumeError("unavailable", "Cannot finish", { cause: internal });
  const logged: unknown[] = [];
  const at = (level: string) => (_message: string, fields: () => Record<string, unknown>) =>
    void logged.push([level, fields()["error"]]);
  const log = {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  } as unknown as Logger;
  const call = { path: "/csi.v1.Node/NodeStageVolume", volumeId: "v", durationMs: 1, requestId: "r" };
  logCall(log, { ...call, changing: true, code: "UNAVAILABLE", error } as CallRecord);
  assert.deepEqual(logged, [["error", bug]]);
});
