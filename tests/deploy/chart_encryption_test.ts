import assert from "node:assert/strict";
import { parse } from "yaml";
import { chartTest, render, rendered } from "./chart.ts";
import { type KubernetesObject, readProjectFile } from "./objects.ts";

/** A class of the chart's values. */
const encrypted = { name: "encrypted", encryptionSecret: { name: "volume-passphrase", namespace: "vault" } };

function values(...storageClasses: readonly object[]): object {
  return { router: { address: "10.0.0.1" }, storageClasses };
}

function parametersOf(objects: readonly KubernetesObject[], name: string): unknown {
  const found = objects.find(({ kind, metadata }) => kind === "StorageClass" && metadata.name === name);
  return (found as unknown as { readonly parameters?: unknown }).parameters;
}

/** A node needs the passphrase for its stage, and for a publish that stages anew. */
function secretParameters(name: string, namespace: string): Record<string, string> {
  const prefix = "csi.storage.k8s.io/node";
  return Object.fromEntries(
    ["stage", "publish"].flatMap((call) => [
      [`${prefix}-${call}-secret-name`, name],
      [`${prefix}-${call}-secret-namespace`, namespace],
    ]),
  );
}

chartTest("an encryptionSecret makes a class encrypted, and names its Secret to the kubelet alone", () => {
  const objects = rendered({ values: values({ ...encrypted, fsType: "xfs" }, { name: "plain" }) });
  assert.deepEqual(parametersOf(objects, "encrypted"), {
    "csi.storage.k8s.io/fstype": "xfs",
    "encrypted": "true",
    ...secretParameters("volume-passphrase", "vault"),
  });
  assert.equal(parametersOf(objects, "plain"), undefined);
  // The kubelet reads it; the chart neither makes one nor lets the driver read any.
  assert.equal(objects.some(({ kind }) => kind === "Secret"), false);
});

chartTest("an encryptionSecret may be one of each claim, and goes with other parameters", () => {
  const encryptionSecret = { name: "${pvc.name}-luks", namespace: "${pvc.namespace}" };
  const parameters = { allowDiscards: true, pbkdfMemory: 64 };
  const objects = rendered({ values: values({ ...encrypted, encryptionSecret, parameters }) });
  assert.deepEqual(parametersOf(objects, "encrypted"), {
    "encrypted": "true",
    ...secretParameters("${pvc.name}-luks", "${pvc.namespace}"),
    "allowDiscards": "true",
    "pbkdfMemory": "64",
  });
});

const wrongSecrets: readonly unknown[] = [
  {},
  null,
  "volume-passphrase",
  { name: "volume-passphrase" },
  { name: "", namespace: "vault" },
  { name: "Volume passphrase", namespace: "vault" },
  { name: "volume-passphrase", namespace: "${pvc.name}" },
  { name: "${pvc.labels}", namespace: "vault" },
  { ...encrypted.encryptionSecret, key: "passphrase" },
];

for (const encryptionSecret of wrongSecrets) {
  chartTest(
    `an encryptionSecret of ${JSON.stringify(encryptionSecret)} is refused, and makes no plain class`,
    () => {
      const { success, complaint } = render({ values: values({ ...encrypted, encryptionSecret }) });
      assert.equal(success, false);
      assert.match(complaint, /encryptionSecret/);
    },
  );
}

const contradictions: readonly Record<string, string>[] = [
  { encrypted: "false" },
  { encrypted: "true" },
  { "csi.storage.k8s.io/node-stage-secret-name": "another" },
  { "csi.storage.k8s.io/node-stage-secret-namespace": "another" },
  { "csi.storage.k8s.io/node-publish-secret-name": "another" },
  { deviceLayer: "multipath" },
];

for (const parameters of contradictions) {
  chartTest(`an encryptionSecret beside the parameters ${JSON.stringify(parameters)} is refused`, () => {
    const { success, complaint } = render({ values: values({ ...encrypted, parameters }) });
    assert.equal(success, false);
    assert.match(complaint, /the StorageClass encrypted has an encryptionSecret/);
  });
}

chartTest("shared directories have no encryptionSecret", () => {
  const directory = { enabled: true, basePaths: ["/share"], storageClasses: [encrypted] };
  const { success, complaint } = render({ values: { ...values(), directory } });
  assert.equal(success, false);
  assert.match(complaint, /encryptionSecret/);
});

chartTest("the example of values makes a class with the Secret of the guide", async () => {
  const example = parse(await readProjectFile("deploy/examples/encrypted.yaml"));
  assert.deepEqual(parametersOf(rendered({ values: example }), "rds-encrypted"), {
    "csi.storage.k8s.io/fstype": "ext4",
    ...secretParameters("volume-passphrase", "rds-csi"),
    encrypted: "true",
  });
  const guide = await readProjectFile("docs/guides/encryption.md");
  assert.match(guide, /-n rds-csi create secret generic volume-passphrase --from-file=encryptionPassphrase=/);
});
