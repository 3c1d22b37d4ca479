import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { noticesOf, packagesIn, readLicense } from "./licenses.ts";
import { readCompiler, runtimeDigest } from "./runtime.ts";
import { billOfMaterials, chartBill, digestIn } from "./sbom.ts";
import { makeScratch } from "../../tests/support/scratch.ts";

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
  const runtimes = (["amd64", "arm64"] as const).map((architecture) => ({
    architecture,
    digest: `of ${architecture}`,
  }));
  const released = {
    version: "9.9.9",
    commit: "f00",
    seconds: 86_400,
    deno: "2.9.6",
    compiler: { digest: "of the compiler", isPinned: true },
    runtimes,
    packages,
    lock,
  };
  const text = billOfMaterials(released);
  assert.equal(billOfMaterials(released), text);
  const bill = JSON.parse(text);
  assert.match(
    bill.serialNumber,
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  assert.equal(bill.metadata.timestamp, "1970-01-02T00:00:00.000Z");
  assert.deepEqual(bill.components.map(({ purl }: { purl: string }) => purl), [
    "pkg:generic/deno@2.9.6?arch=amd64",
    "pkg:generic/deno@2.9.6?arch=arm64",
    "pkg:npm/%40a/b@1.0.0",
    "pkg:npm/c@2.0.0",
  ]);
  assert.deepEqual(bill.components[1].hashes, [{ alg: "SHA-256", content: "of arm64" }]);
  const [compiler] = bill.metadata.tools.components;
  assert.deepEqual(compiler.hashes, [{ alg: "SHA-256", content: "of the compiler" }]);
  assert.equal(compiler.properties, undefined);
  const unpinned = { ...released, compiler: { ...released.compiler, isPinned: false } };
  assert.deepEqual(JSON.parse(billOfMaterials(unpinned)).metadata.tools.components[0].properties, [
    { name: "integrity", value: "UNVERIFIED" },
  ]);
  assert.deepEqual(bill.components[3].licenses, [{ expression: "(MIT OR Apache-2.0)" }]);
  assert.deepEqual(bill.dependencies[0].dependsOn.length, 4);
  assert.notEqual(
    JSON.parse(billOfMaterials({ ...released, commit: "bad" })).serialNumber,
    bill.serialNumber,
  );
});

Deno.test("readCompiler() takes only a Deno of pinned bytes for checked", async () => {
  await using scratch = await makeScratch();
  const file = `${scratch.path}/deno`;
  await Deno.writeTextFile(file, "a compiler");
  const digest = createHash("sha256").update("a compiler").digest("hex");
  assert.deepEqual(await readCompiler(file, `${digest}  @deno/some/deno\n`), { digest, isPinned: true });
  assert.deepEqual(await readCompiler(file, `${"0".repeat(64)}  @deno/some/deno\n`), {
    digest,
    isPinned: false,
  });
});

Deno.test("chartBill() has the digest of each image, and says UNVERIFIED of one without", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const bill = JSON.parse(chartBill({ version: "9.9.9", commit: "f00", seconds: 0 }, [
    { name: "example.net:5000/storage/tool:v1.0.0", digest },
    { name: "busybox:1.37", digest: undefined },
  ]));
  const [known, unknown] = bill.components;
  assert.deepEqual([known.name, known.version], ["tool", "v1.0.0"]);
  assert.deepEqual(known.hashes, [{ alg: "SHA-256", content: "a".repeat(64) }]);
  assert.equal(
    known.purl,
    `pkg:oci/tool@sha256%3A${"a".repeat(64)}?repository_url=example.net%3A5000%2Fstorage%2Ftool&tag=v1.0.0`,
  );
  assert.equal(unknown.hashes, undefined);
  assert.deepEqual(unknown.properties, [{ name: "digest", value: "UNVERIFIED" }]);
  assert.equal(unknown.purl, "pkg:oci/busybox?repository_url=busybox&tag=1.37");
});

Deno.test("runtimeDigest() takes what is before the program, and nothing but an executable with one", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const file = `${folder}/executable`;
  // The header of an ELF file with a table of two sections of 64 bytes, which begins at byte 100.
  const runtime = new Uint8Array(228).fill(7);
  const head = new DataView(runtime.buffer);
  head.setUint32(0, 0x7f454c46);
  head.setBigUint64(0x28, 100n, true);
  head.setUint16(0x3a, 64, true);
  head.setUint16(0x3c, 2, true);
  try {
    await Deno.writeFile(file, new Uint8Array([...runtime, 1, 2, 3]));
    assert.equal(await runtimeDigest(file), createHash("sha256").update(runtime).digest("hex"));
    for (const other of [runtime, runtime.subarray(0, 200), new Uint8Array(300), new Uint8Array()]) {
      await Deno.writeFile(file, other);
      await assert.rejects(runtimeDigest(file), /is no runtime with a program after it/);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("readLicense() reads the terms from the folder, in every form that packages use", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const one = { name: "c", version: "2.0.0" };
  const describe = (fields: unknown) => Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(fields));
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
});
