import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { imagesIn } from "../../tools/image/chart_images.ts";
import { packagesIn } from "../../tools/release/licenses.ts";
import { BUNDLE } from "../../tools/build.ts";
import { version } from "../../src/cli/build_version.ts";
import { projectRoot } from "../support/parts.ts";
import { hostOutput, isThere } from "../../tools/host_command.ts";
import { makeScratch } from "../support/scratch.ts";

/** The longest time to make a release, and for an emulated executable to run its checks. */
const limitMs = 8 * 60_000;

const folder = join(projectRoot, "dist/release");
const isMade = isThere(join(folder, "SHA256SUMS"));
if (!isMade) warn("the tests of a release need one: make release");

const emulator = "/usr/bin/qemu-aarch64-static";
const arm64Libraries = "/usr/aarch64-linux-gnu/lib";
const lacking = [
  ...isThere(emulator) ? [] : ["the Debian package qemu-user-static"],
  ...isThere(join(arm64Libraries, "libgcc_s.so.1")) ? [] : ["libgcc-s1-arm64-cross"],
  ...Deno.uid() === 0 ? [] : ["root"],
];
if (lacking.length > 0) warn(`the test of the arm64 executable needs ${lacking.join(", ")}`);

Deno.test(
  { name: "a release's checksums are those of its files, all of them", ignore: !isMade },
  async () => {
    const stdout = await hostOutput("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: folder });
    const checked = stdout.trim().split("\n").map((line) => line.replace(/: OK$/, ""));
    const files = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
    const signature = files.filter((name) => ["SHA256SUMS.sig", "UNSIGNED"].includes(name));
    assert.equal(signature.length, 1, "a release is signed, or says that it is not");
    assert.deepEqual([...checked, "SHA256SUMS", ...signature].toSorted(), files.toSorted());
    const expected = ["linux-amd64", "linux-arm64"].map((one) => `rds-csi-${version}-${one}`);
    assert.deepEqual(checked.filter((name) => name.includes("-linux-")).toSorted(), expected);
  },
);

Deno.test(
  { name: "a release reports what is inside: package, version, digest and terms", ignore: !isMade },
  async () => {
    const bundle = join(projectRoot, BUNDLE);
    const texts = await Array.fromAsync(
      Deno.readDir(bundle),
      ({ name }) => Deno.readTextFile(join(bundle, name)),
    );
    const inside = packagesIn(texts).map(({ name, version }) => `${name} ${version}`);
    for (const name of ["@grpc/grpc-js", "@kubernetes/client-node", "ssh2"]) {
      assert.ok(inside.some((one) => one.startsWith(`${name} `)), `${name} is inside`);
    }
    assert.ok(!inside.some((one) => one.startsWith("fast-check ")), "what only tests need is not");
    const bill = JSON.parse(await Deno.readTextFile(join(folder, `rds-csi-${version}.cdx.json`))) as Bill;
    const libraries = bill.components.filter(({ name }) => name !== "deno");
    assert.deepEqual(libraries.map(({ name, version }) => `${name} ${version}`), inside);
    for (const { name, hashes } of libraries) {
      assert.match(
        hashes?.[0]?.content ?? "",
        /^[0-9a-f]{128}$/,
        name,
      );
    }
    const terms = await Deno.readTextFile(join(folder, `rds-csi-${version}.licenses.txt`));
    for (const one of [...inside, "Deno", "V8"]) assert.ok(terms.includes(`\n${one} (`), one);
  },
);

/** A runtime that was given to the build, by platform. */
const given = { amd64: "DENORT_BIN", arm64: "DENORT_BIN_ARM64" };

Deno.test(
  { name: "a release's bill has the digests of the runtimes that are in its executables", ignore: !isMade },
  async () => {
    for (const [architecture, variable] of Object.entries(given)) {
      const executable = join(folder, `rds-csi-${version}-linux-${architecture}`);
      const headers = await hostOutput("readelf", ["--file-header", executable]);
      const [start, size, count] = ["Start of section", "Size of section", "Number of section"].map((name) =>
        Number(new RegExp(`${name} headers: *(\\d+)`).exec(headers)?.[1])
      ) as [number, number, number];
      const runtime = (await Deno.readFile(executable)).subarray(0, start + size * count);
      const file = Deno.env.get(variable);
      if (file) {
        assert.ok(Buffer.from(await Deno.readFile(file)).equals(runtime), `${variable} is in it, unchanged`);
      }
      const digest = createHash("sha256").update(runtime).digest("hex");
      for (const name of [".cdx.json", `-${architecture}.image.cdx.json`]) {
        const { components } = JSON.parse(
          await Deno.readTextFile(join(folder, `rds-csi-${version}${name}`)),
        ) as Bill;
        const found = components.filter(({ name, purl }) =>
          name === "deno" && purl?.endsWith(`=${architecture}`)
        );
        assert.deepEqual(found.map(({ hashes }) => hashes), [[{ alg: "SHA-256", content: digest }]], name);
      }
    }
  },
);

Deno.test(
  { name: "a release's bill of the chart has every image's digest, or says UNVERIFIED", ignore: !isMade },
  async () => {
    const bill = await Deno.readTextFile(join(folder, `rds-csi-${version}.chart.cdx.json`));
    const images = imagesIn(await Deno.readTextFile(join(projectRoot, "deploy/chart/values.yaml")));
    assert.ok(images.length > 5);
    const { components } = JSON.parse(bill) as Bill;
    assert.deepEqual(
      components.map(({ name, version, hashes, properties }) => [
        `${name}:${version}`,
        hashes?.map(({ content }) => `sha256:${content}`) ?? properties?.map(({ value }) => value),
      ]),
      images.map(({ name, digest }) => [name.replace(/.*\//, ""), [digest ?? "UNVERIFIED"]]),
    );
  },
);

Deno.test({
  name: "a release made elsewhere is the same, byte for byte, and signed by the key that is given",
  ignore: !isMade,
}, async () => {
  await using made = await makeScratch();
  const scratch = made.path;
  const elsewhere = join(scratch, "deeper/than/before");
  await Deno.mkdir(elsewhere, { recursive: true });
  const copy = 'tar -C "$1" --exclude=./dist --exclude=./.tools --exclude=./tmp -c . | tar -C "$2" -x';
  await hostOutput("/bin/bash", ["-o", "pipefail", "-c", copy, "bash", projectRoot, elsewhere]);
  await Deno.symlink(join(projectRoot, ".tools"), join(elsewhere, ".tools"));
  const key = join(scratch, "key");
  await hostOutput("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
  const env = { ALLOW_DIRTY: "1", RELEASE_SIGNING_KEY: key };
  await hostOutput("make", ["release"], { cwd: elsewhere, env, limitMs });
  const sums = (at: string) => Deno.readTextFile(join(at, "SHA256SUMS"));
  assert.equal(await sums(join(elsewhere, "dist/release")), await sums(folder));
  await assertSigned(join(elsewhere, "dist/release"), key);
});

Deno.test({
  name: "the arm64 executable of a release takes volumes through the controller's half of the demo",
  ignore: !isMade || lacking.length > 0,
}, async () => {
  await using made = await makeScratch();
  const scratch = made.path;
  // The path of the C library on such a machine, which the executable's permissions name.
  await Deno.mkdir(join(scratch, "usr/lib"), { recursive: true });
  await Deno.symlink(arm64Libraries, join(scratch, "lib"));
  await Deno.symlink(arm64Libraries, join(scratch, "usr/lib/aarch64-linux-gnu"));
  const executable = join(scratch, "rds-csi");
  await Deno.copyFile(join(folder, `rds-csi-${version}-linux-arm64`), executable);
  await Deno.chmod(executable, 0o755);
  await Deno.chmod(scratch, 0o755);
  // The emulator lacks kernel requests of the node's half, so the executable runs without root.
  const user = ["--reuid", "65532", "--regid", "65532", "--clear-groups"];
  const emulated = (...args: string[]) =>
    hostOutput("setpriv", [...user, emulator, "-L", scratch, executable, ...args], { cwd: "/", limitMs });
  const facts = JSON.parse(await emulated("version", "--json")) as Readonly<Record<string, string>>;
  assert.equal(facts["target"], "aarch64-unknown-linux-gnu");
  assert.equal(facts["version"], version);
  assert.match(await emulated("demo"), /^demo: ok$/m);
});

/** Checks the signature as CONTRIBUTING.md describes it for users of a release. */
async function assertSigned(folder: string, key: string): Promise<void> {
  const signers = `${key}.signers`;
  await Deno.writeTextFile(signers, `releaser ${await Deno.readTextFile(`${key}.pub`)}`);
  const verify = (file: string) =>
    hostOutput(
      "sh",
      ["-c", 'ssh-keygen -Y verify -f "$1" -I releaser -n rds-csi-release -s "$2" <"$3"', "sh"].concat(
        [signers, join(folder, "SHA256SUMS.sig"), file],
      ),
    );
  await verify(join(folder, "SHA256SUMS"));
  const changed = join(folder, "changed");
  await Deno.writeTextFile(changed, `${await Deno.readTextFile(join(folder, "SHA256SUMS"))}\n`);
  await assert.rejects(verify(changed), /Could not verify signature|incorrect signature/i);
}

interface Bill {
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly purl?: string;
    readonly properties?: readonly { readonly name: string; readonly value: string }[];
    readonly hashes?: readonly { readonly content: string }[];
  }[];
}

function warn(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`ignored: ${text}\n`));
}
