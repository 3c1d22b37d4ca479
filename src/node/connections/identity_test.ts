import assert from "node:assert/strict";
import { VolumeError } from "../../volume/errors.ts";
import type { FoundDevice, PathInfo } from "../../volume/ports/ports.ts";
import { type ExpectedIdentity, proveDevice } from "./device.ts";

const found: FoundDevice = {
  path: "/dev/nvme0n2",
  deviceNumber: "259:4",
  sizeBytes: 2048n,
  nqn: "nqn:a",
  nsid: 1,
  uniqueId: "00ff",
};
const node: PathInfo = { kind: "block", deviceNumber: "259:4" };
const expected: ExpectedIdentity = { nqn: "nqn:a", sizeBytes: 2048n, uniqueId: "00ff" };

Deno.test("proveDevice() gives back the device when everything agrees", () => {
  assert.equal(proveDevice(found, node, expected), found);
});

Deno.test("proveDevice() accepts a device that has grown, and one whose id was never seen", () => {
  assert.equal(proveDevice(found, node, { nqn: "nqn:a", sizeBytes: 1024n, uniqueId: "" }), found);
});

const mismatches: readonly [string, Partial<FoundDevice>, PathInfo | undefined][] = [
  ["another NQN", { nqn: "nqn:b" }, node],
  ["another namespace", { nsid: 2 }, node],
  ["another unique id", { uniqueId: "00fe" }, node],
  ["a unique id gone", { uniqueId: "" }, node],
  ["a smaller device", { sizeBytes: 2047n }, node],
  ["no device node", {}, undefined],
  ["a file in place of the node", {}, { kind: "file" }],
  ["a node of another number", {}, { kind: "block", deviceNumber: "259:5" }],
];

for (const [name, change, at] of mismatches) {
  Deno.test(`proveDevice() throws identity-mismatch for ${name}`, () => {
    assert.throws(
      () => proveDevice({ ...found, ...change }, at, expected),
      (error) => VolumeError.is(error, "identity-mismatch"),
    );
  });
}
