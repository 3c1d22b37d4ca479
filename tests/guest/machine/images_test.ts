import assert from "node:assert/strict";
import { valuesWithoutDigests } from "./images.ts";

Deno.test("valuesWithoutDigests() names the images that have a digest, without it, and nothing else", () => {
  const digest = `@sha256:${"a".repeat(64)}`;
  const values = `
image: { repository: rds-csi, digest: "" }
sidecars:
  pullPolicy: Always
  attacher: { image: "example.net/attacher:v1", workers: 2 }
  provisioner: { image: "example.net:5000/provisioner:v1${digest}", extraArgs: [] }
test: { image: "busybox:1.37${digest}" }
`;
  assert.deepEqual(valuesWithoutDigests(values), {
    sidecars: { provisioner: { image: "example.net:5000/provisioner:v1" } },
    test: { image: "busybox:1.37" },
  });
});
