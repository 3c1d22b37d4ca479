import assert from "node:assert/strict";
import { argsForRig, envForRig, kept } from "./rendered_args.ts";

const fates = { ...kept("mode", "register"), endpoint: (value: string) => `--endpoint=/rig${value}` };

Deno.test("argsForRig() keeps rendered arguments, and replaces those that differ in the rig", () => {
  const args = ["serve", "--mode=node", "--endpoint=/csi", "--register"];
  const text = argsForRig({ name: "driver", args }, fates);
  assert.deepEqual(text, ["serve", "--mode=node", "--endpoint=/rig/csi", "--register"]);
});

Deno.test("argsForRig() refuses a flag without a fate", () => {
  const args = ["--mode=node", "--endpoint=/csi", "--new=1"];
  assert.throws(() => argsForRig({ name: "driver", args }, fates), /container=driver flag=--new=1/);
  assert.throws(() => argsForRig({ name: "driver", args: ["-v=2"] }, fates), /flag=-v=2/);
});

Deno.test("argsForRig() refuses a replacement of a flag that is not rendered", () => {
  assert.throws(() => argsForRig({ name: "driver", args: ["--mode=node"] }, fates), /flag=endpoint/);
});

Deno.test("envForRig() returns a pod's fields, and refuses anything else", () => {
  const field = { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } };
  const fields = { "spec.nodeName": "n1" };
  assert.deepEqual(envForRig({ name: "driver", env: [field] }, fields), { NODE: "n1" });
  assert.deepEqual(envForRig({ name: "driver" }, fields), {});
  assert.throws(() => envForRig({ name: "driver", env: [{ name: "PLAIN" }] }, fields), /variable=PLAIN/);
  assert.throws(() => envForRig({ name: "driver", env: [field] }, {}), /variable=NODE/);
});
