import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { parseNodeParameters } from "./node_parameters.ts";

Deno.test("parseNodeParameters() leaves everything to defaults when the context is empty", () => {
  assert.deepEqual(parseNodeParameters({ backend: "default", volumePath: "/p" }, "ext4"), {
    connection: {
      ctrlLossTmo: undefined,
      reconnectDelay: undefined,
      keepAliveTmo: undefined,
      nrIoQueues: undefined,
      fastIoFailTmo: undefined,
      digests: [],
    },
    encryption: {
      encrypted: false,
      allowDiscards: false,
      keyCost: { memoryMiB: undefined, timeMs: undefined },
    },
    deviceLayer: undefined,
    fsLabel: undefined,
    fsck: "preen",
    mkfsOptions: [],
  });
});

Deno.test("parseNodeParameters() reads every key", () => {
  const values = {
    ctrlLossTmo: "-1",
    reconnectDelay: "5",
    keepAliveTmo: "10",
    nrIoQueues: "4",
    fastIoFailTmo: "60",
    hdrDigest: "true",
    dataDigest: "true",
    encrypted: "true",
    allowDiscards: "true",
    pbkdfMemory: "64",
    pbkdfTime: "500",
    deviceLayer: "auto",
    fsLabel: "data",
    fsckMode: "off",
    mkfsOptions: "-I 512",
  };
  assert.deepEqual(parseNodeParameters(values, "ext4"), {
    connection: {
      ctrlLossTmo: -1,
      reconnectDelay: 5,
      keepAliveTmo: 10,
      nrIoQueues: 4,
      fastIoFailTmo: 60,
      digests: ["header", "data"],
    },
    encryption: { encrypted: true, allowDiscards: true, keyCost: { memoryMiB: 64, timeMs: 500 } },
    deviceLayer: "auto",
    fsLabel: "data",
    fsck: "off",
    mkfsOptions: ["-I", "512"],
  });
});

Deno.test("parseNodeParameters() leaves a keep-alive of 0 to the kernel, also where the legacy driver has written it", () => {
  const earlier = { nqn: "nqn.2000-02.com.mikrotik:pvc-1", ctrlLossTmo: "0", keepAliveTmo: "0" };
  for (const values of [{ keepAliveTmo: "0" }, earlier]) {
    const { connection } = parseNodeParameters(values, "ext4");
    assert.deepEqual([connection.keepAliveTmo, connection.ctrlLossTmo], [undefined, undefined]);
  }
});

Deno.test("parseNodeParameters() reads the -e panic of a volume made before it was refused as -e remount-ro", () => {
  const { mkfsOptions } = parseNodeParameters({ mkfsOptions: "-m 1 -e panic" }, "ext4");
  assert.deepEqual(mkfsOptions, ["-m", "1", "-e", "remount-ro"]);
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
  ["deviceLayer", "always"],
  ["fsckMode", "yes"],
  ["mkfsOptions", "-F"],
];

for (const [key, value] of wrongParameters) {
  Deno.test(`parseNodeParameters() throws invalid for ${key}=${value}`, () => {
    assert.throws(
      () => parseNodeParameters({ [key]: value }, "ext4"),
      refusal("invalid"),
    );
  });
}
