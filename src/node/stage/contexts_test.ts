import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import { parsePublishContext, parseVolumeContext } from "./contexts.ts";

const context = {
  nvmeAddress: "10.0.0.1",
  nvmePort: "4420",
  nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
  epoch: "1-0a0b0c0d",
  size: "1073741824",
  readonly: "false",
  mayFormat: "true",
  nvme_address: "10.0.0.1",
};

Deno.test("parsePublishContext() reads every key and passes over others", () => {
  assert.deepEqual(parsePublishContext(context, "pvc-1"), {
    nqn: context.nqn,
    epoch: context.epoch,
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 1073741824n,
    readOnly: false,
    mayFormat: true,
  });
});

Deno.test("parsePublishContext() takes absent flags as false", () => {
  const { readonly: _r, mayFormat: _m, ...rest } = context;
  const parsed = parsePublishContext(rest, "pvc-1");
  assert.deepEqual([parsed.readOnly, parsed.mayFormat], [false, false]);
});

Deno.test("parsePublishContext() accepts the NQN without epoch that an adopted volume keeps", () => {
  const nqn = "nqn.2000-02.com.mikrotik:pvc-1";
  assert.equal(parsePublishContext({ ...context, nqn }, "pvc-1").nqn, nqn);
});

const wrong: readonly [string, string][] = [
  ["nvmeAddress", ""],
  ["nvmeAddress", "-x"],
  ["nvmeAddress", "a b"],
  ["nvmePort", "0"],
  ["nvmePort", "65536"],
  ["nvmePort", "abc"],
  ["nqn", ""],
  ["nqn", "nqn.2000-02.com.mikrotik:a/b"],
  ["nqn", "nqn.2000-02.com.mikrotik:../pvc-1"],
  ["nqn", `nqn.2000-02.com.mikrotik:${"x".repeat(200)}:pvc-1:1-0a0b0c0d`],
  ["epoch", ""],
  ["epoch", "1 2"],
  ["size", "0"],
  ["size", "-5"],
  ["size", "1e9"],
  ["size", ""],
  ["readonly", "yes"],
  ["mayFormat", "1"],
  ["mayFormat", ""],
];

for (const [key, value] of wrong) {
  Deno.test(`parsePublishContext() throws invalid for ${key}=${JSON.stringify(value.slice(0, 40))}`, () => {
    assert.throws(
      () => parsePublishContext({ ...context, [key]: value }, "pvc-1"),
      (error) => VolumeError.is(error, "invalid") && error.message.includes(key),
    );
  });
}

for (
  const nqn of ["nqn.2000-02.com.mikrotik:pvc-11:1-0a0b0c0d", "nqn.2000-02.com.mikrotik:pvc-1:2-0a0b0c0d"]
) {
  Deno.test(`parsePublishContext() throws identity-mismatch for the NQN ${nqn}`, () => {
    assert.throws(
      () => parsePublishContext({ ...context, nqn }, "pvc-1"),
      refusal("identity-mismatch"),
    );
  });
}

Deno.test("parsePublishContext() does not take an epoch in another volume's NQN for a volume", () => {
  assert.throws(
    () => parsePublishContext(context, "1-0a0b0c0d"),
    refusal("identity-mismatch"),
  );
});

Deno.test("parseVolumeContext() leaves everything to defaults when nothing is said", () => {
  assert.deepEqual(parseVolumeContext({ backend: "default", volumePath: "/p" }, "ext4"), {
    connection: {
      ctrlLossTmo: undefined,
      reconnectDelay: undefined,
      keepAliveTmo: undefined,
      nrIoQueues: undefined,
      fastIoFailTmo: undefined,
    },
    fsLabel: undefined,
    fsck: "preen",
    mkfsOptions: [],
  });
});

Deno.test("parseVolumeContext() reads every key", () => {
  const values = {
    ctrlLossTmo: "-1",
    reconnectDelay: "5",
    keepAliveTmo: "10",
    nrIoQueues: "4",
    fastIoFailTmo: "60",
    fsLabel: "data",
    fsckMode: "off",
    mkfsOptions: "-I 512",
  };
  assert.deepEqual(parseVolumeContext(values, "ext4"), {
    connection: { ctrlLossTmo: -1, reconnectDelay: 5, keepAliveTmo: 10, nrIoQueues: 4, fastIoFailTmo: 60 },
    fsLabel: "data",
    fsck: "off",
    mkfsOptions: ["-I", "512"],
  });
});

Deno.test("parseVolumeContext() leaves a keep-alive of 0 to the kernel, also where the earlier driver has written it", () => {
  const earlier = { nqn: "nqn.2000-02.com.mikrotik:pvc-1", ctrlLossTmo: "0", keepAliveTmo: "0" };
  for (const values of [{ keepAliveTmo: "0" }, earlier]) {
    const { connection } = parseVolumeContext(values, "ext4");
    assert.deepEqual([connection.keepAliveTmo, connection.ctrlLossTmo], [undefined, undefined]);
  }
});

const wrongParameters: readonly [string, string][] = [
  ["ctrlLossTmo", "-2"],
  ["ctrlLossTmo", "long"],
  ["reconnectDelay", "0"],
  ["keepAliveTmo", "1.5"],
  ["nrIoQueues", "1000"],
  ["fastIoFailTmo", "-1"],
  ["fsLabel", "a label"],
  ["fsLabel", "thirteen-long"],
  ["fsLabel", "-F"],
  ["fsckMode", "yes"],
  ["mkfsOptions", "-F"],
];

for (const [key, value] of wrongParameters) {
  Deno.test(`parseVolumeContext() throws invalid for ${key}=${value}`, () => {
    assert.throws(
      () => parseVolumeContext({ [key]: value }, "ext4"),
      refusal("invalid"),
    );
  });
}
