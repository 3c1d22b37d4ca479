import assert from "node:assert/strict";
import { noticesOf, packagesIn, readLicense } from "./licenses.ts";
import { billOfMaterials, digestIn } from "./sbom.ts";

const zeros = "0".repeat(128);
const lock = {
  npm: {
    "@a/b@1.0.0": { integrity: `sha512-${btoa("\0".repeat(64))}` },
    "c@2.0.0_d@1.0.0": { integrity: `sha512-${btoa("\0".repeat(64))}` },
    "e@1.0.0": { integrity: "sha1-AAAA" },
  },
};

Deno.test("packagesIn() finds each package once, with and without a scope, and leaves out its peers", () => {
  const texts = ["// npm:@a/b/1.0.0/x.js\n// npm:@a/b/1.0.0/y.js", '"npm:c/2.0.0_d@1.0.0/i.js" npm:nothing'];
  assert.deepEqual(packagesIn(texts), [{ name: "@a/b", version: "1.0.0" }, { name: "c", version: "2.0.0" }]);
});

Deno.test("digestIn() returns the pinned digest, and throws without one of that kind", () => {
  assert.equal(digestIn(lock, { name: "@a/b", version: "1.0.0" }), zeros);
  assert.equal(digestIn(lock, { name: "c", version: "2.0.0" }), zeros);
  assert.throws(() => digestIn(lock, { name: "c", version: "2.0.1" }), /no digest of c@2\.0\.1/);
  assert.throws(() => digestIn(lock, { name: "e", version: "1.0.0" }), /no digest of e@1\.0\.0/);
});

Deno.test("billOfMaterials() names the runtime and each package, and is the same each time", () => {
  const packages = [
    { name: "@a/b", version: "1.0.0", license: "MIT" },
    { name: "c", version: "2.0.0", license: "(MIT OR Apache-2.0)" },
  ];
  const released = { version: "9.9.9", commit: "f00", seconds: 86_400, deno: "2.9.6", packages, lock };
  const text = billOfMaterials(released);
  assert.equal(billOfMaterials(released), text);
  const bill = JSON.parse(text);
  assert.match(
    bill.serialNumber,
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  assert.equal(bill.metadata.timestamp, "1970-01-02T00:00:00.000Z");
  assert.deepEqual(bill.components.map(({ purl }: { purl: string }) => purl), [
    "pkg:generic/deno@2.9.6",
    "pkg:npm/%40a/b@1.0.0",
    "pkg:npm/c@2.0.0",
  ]);
  assert.deepEqual(bill.components[2].licenses, [{ expression: "(MIT OR Apache-2.0)" }]);
  assert.deepEqual(bill.dependencies[0].dependsOn.length, 3);
  assert.notEqual(
    JSON.parse(billOfMaterials({ ...released, commit: "bad" })).serialNumber,
    bill.serialNumber,
  );
});

Deno.test("readLicense() reads the terms from the folder, in every form that packages use", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const one = { name: "c", version: "2.0.0" };
  const describe = (fields: unknown) => Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(fields));
  try {
    await Deno.writeTextFile(`${folder}/LICENSE.md`, "do what you like\r\n");
    await Deno.writeTextFile(`${folder}/licenser.js`, "not a notice");
    await describe({ licenses: [{ type: "ISC" }] });
    assert.equal((await readLicense(one, folder)).license, "ISC");
    await describe({ license: { type: "BSD-3-Clause" } });
    assert.equal((await readLicense(one, folder)).license, "BSD-3-Clause");
    await describe({ license: "MIT" });
    const licensed = await readLicense(one, folder);
    assert.deepEqual(licensed, { ...one, license: "MIT", notices: ["do what you like\r\n"] });
    assert.match(noticesOf([licensed]), /\nc 2\.0\.0 \(MIT\)\n\ndo what you like\n$/);
    await describe({});
    await assert.rejects(readLicense(one, folder), /c@2\.0\.0 does not say its licence/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
