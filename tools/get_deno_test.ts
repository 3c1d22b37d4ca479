import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const tools = fileURLToPath(new URL(".", import.meta.url));

const ignore = !["npm", "tar"].every((name) =>
  new Deno.Command("which", { args: [name], stdout: "null" }).outputSync().success
);
if (ignore) {
  Deno.stderr.writeSync(new TextEncoder().encode("ignored: the tests of get-deno.sh need npm and tar\n"));
}

const version = "99.9.9";
const platform = "@deno/some-platform";

Deno.test("every package of Deno is pinned by a digest, at one version, and names no registry", async () => {
  const { packages } = JSON.parse(await Deno.readTextFile(`${tools}deno/package-lock.json`)) as Lock;
  const { "": root, ...pinned } = packages;
  const { dependencies } = JSON.parse(await Deno.readTextFile(`${tools}deno/package.json`)) as Pins;
  const { deno: wanted } = dependencies;
  assert.deepEqual(root?.dependencies, dependencies);
  assert.ok(
    "node_modules/@deno/linux-x64-glibc" in pinned && "node_modules/@deno/linux-arm64-glibc" in pinned,
  );
  for (const [name, one] of Object.entries(pinned)) {
    assert.equal(one.version, wanted, name);
    assert.match(one.integrity ?? "", /^sha512-[\w+/]{86}==$/, name);
    assert.equal(one.resolved, undefined, name);
  }
});

for (const flags of [[], ["--checked"]]) {
  Deno.test({
    name: `get-deno.sh ${flags} brings a Deno whose packages have the pinned digests`,
    ignore,
  }, async () => {
    const { success, stdout, stderr, folder } = await getDeno({ flags });
    assert.ok(success, stderr);
    assert.equal(stdout, `${folder}/node_modules/.bin/deno\n`);
  });
}

Deno.test("get-deno.sh takes a Deno of that version on the PATH", async () => {
  const { stdout, onPath } = await getDeno({ isOnPath: true });
  assert.equal(stdout, `${onPath}/deno\n`);
});

Deno.test({ name: "get-deno.sh --checked takes no Deno from the PATH", ignore }, async () => {
  const { stdout, stderr, folder } = await getDeno({ isOnPath: true, flags: ["--checked"] });
  assert.equal(stdout, `${folder}/node_modules/.bin/deno\n`, stderr);
});

for (const goal of ["release", "image", "image/binaries", "test"]) {
  const expected = goal === "test" ? "any" : "checked";
  Deno.test(`make ${goal} uses ${expected === "any" ? "any" : "only a checked"} Deno`, async () => {
    const scratch = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
    await using made = new AsyncDisposableStack();
    made.defer(() => Deno.remove(scratch, { recursive: true }));
    await Deno.mkdir(join(scratch, "tools"));
    for (const file of ["Makefile", "deno.json"]) {
      await Deno.copyFile(`${tools}../${file}`, join(scratch, file));
    }
    const script = '#!/bin/sh\n[ "$1" = --checked ] && echo checked-deno || echo any-deno\n';
    await Deno.writeTextFile(join(scratch, "tools/get-deno.sh"), script, { mode: 0o755 });
    // Another goal before it has found its own.
    const args = ["--just-print", "verify", goal];
    const { stdout } = await new Deno.Command("make", { args, cwd: scratch, env: { MAKEFLAGS: "" } })
      .output();
    const lines = new TextDecoder().decode(stdout).split("\n");
    const task = `task --quiet ${goal.replace("/", ":")}`;
    assert.deepEqual(lines.filter((line) => line.endsWith(task)), [`"${expected}-deno" ${task}`]);
  });
}

for (const name of ["deno", platform]) {
  Deno.test({
    name: `get-deno.sh refuses other bytes of ${name}, whatever the registry says of them`,
    ignore,
  }, async () => {
    const { success, stdout, stderr } = await getDeno({ changed: name });
    assert.deepEqual([success, stdout], [false, ""]);
    if (name === "deno") assert.match(stderr, /EINTEGRITY/);
  });
}

interface Pins {
  readonly dependencies: { readonly deno: string };
}

interface Lock {
  readonly packages: Readonly<
    Record<string, {
      readonly version?: string;
      readonly integrity?: string;
      readonly resolved?: string;
      readonly dependencies?: Readonly<Record<string, string>>;
    }>
  >;
}

for (const isPinned of [true, false]) {
  Deno.test({
    name: `get-deno.sh --checked takes the Deno of an earlier run only with pinned bytes: ${isPinned}`,
    ignore,
  }, async () => {
    const earlier = `#!/bin/sh\necho "deno ${version} (stable)"\n# earlier\n`;
    const pinned = createHash("sha256").update(isPinned ? earlier : "another").digest("hex");
    const { stdout, stderr, folder, found } = await getDeno({ flags: ["--checked"], earlier, pinned });
    assert.equal(stdout, `${folder}/node_modules/.bin/deno\n`, stderr);
    assert.equal(found === earlier, isPinned);
  });
}

/** Another case than a registry with the pinned bytes, and no Deno on the PATH. */
interface Case {
  readonly flags?: readonly string[];
  /** The package of which the registry has other bytes than were pinned. */
  readonly changed?: string;
  /** Whether a Deno that calls itself of that version is on the PATH. */
  readonly isOnPath?: boolean;
  /** The Deno that an earlier run has left. */
  readonly earlier?: string;
  /** The SHA-256 that is pinned, in hex. */
  readonly pinned?: string;
}

/** Runs a copy of the script against a registry of ours. */
async function getDeno({ flags = [], changed, isOnPath = false, earlier, pinned = "" }: Case) {
  const scratch = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  await using made = new AsyncDisposableStack();
  made.defer(() => Deno.remove(scratch, { recursive: true }));
  const archives = await packPackages(scratch, changed);
  const script = join(scratch, "tools/get-deno.sh");
  await Deno.mkdir(join(scratch, "tools/deno"), { recursive: true });
  await Deno.copyFile(`${tools}get-deno.sh`, script);
  await Deno.writeTextFile(join(scratch, "tools/deno/package.json"), JSON.stringify(wanted, undefined, 1));
  await Deno.writeTextFile(join(scratch, "tools/deno/package-lock.json"), JSON.stringify(lockOf(archives)));
  await Deno.writeTextFile(join(scratch, "tools/deno/SHA256SUMS"), `${pinned}  ${platform}/deno\n`);
  const bin = join(scratch, `deno-${version}/node_modules/.bin`);
  if (earlier !== undefined) {
    await Deno.mkdir(bin, { recursive: true });
    await Deno.writeTextFile(join(bin, "deno"), earlier, { mode: 0o755 });
  }
  const registry = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    (request) => answer(request, archives),
  );
  made.defer(() => registry.shutdown());
  const onPath = join(scratch, "on-path");
  await Deno.mkdir(onPath);
  const says = isOnPath ? version : "0.0.0";
  await Deno.writeTextFile(join(onPath, "deno"), `#!/bin/sh\necho "deno ${says} (stable)"\n`, {
    mode: 0o755,
  });
  const env = {
    PATH: `${onPath}:${Deno.env.get("PATH")}`,
    npm_config_registry: `http://127.0.0.1:${registry.addr.port}/`,
    npm_config_cache: join(scratch, "cache"),
    HOME: scratch,
  };
  const { success, stdout, stderr } = await new Deno.Command("sh", { args: [script, ...flags, scratch], env })
    .output();
  const decoder = new TextDecoder();
  return {
    success,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
    folder: join(scratch, `deno-${version}`),
    onPath,
    found: success ? await Deno.readTextFile(join(bin, "deno")).catch(() => "") : undefined,
  };
}

const wanted = { private: true, dependencies: { deno: version } };

/** The two packages that Deno consists of on a machine, with the digests that were pinned and the bytes that there are. */
interface Archive {
  readonly description: object;
  readonly pinned: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

async function packPackages(scratch: string, changed?: string): Promise<Map<string, Archive>> {
  const archives = new Map<string, Archive>();
  const install = `require("fs").copyFileSync(require.resolve("${platform}/deno"), __dirname + "/deno")`;
  const contents = {
    deno: {
      more: {
        bin: "deno",
        scripts: { postinstall: "node install.cjs" },
        optionalDependencies: { [platform]: version },
      },
      files: { "deno": "#!/bin/sh\nexit 1\n", "install.cjs": install },
    },
    [platform]: { more: {}, files: { "deno": `#!/bin/sh\necho "deno ${version} (stable)"\n` } },
  };
  for (const [name, { more, files }] of Object.entries(contents)) {
    const description = { name, version, ...more };
    const pack = async (files: Readonly<Record<string, string>>) => {
      const folder = join(scratch, "packed", name);
      await Deno.mkdir(join(folder, "package"), { recursive: true });
      for (const [path, text] of Object.entries({ ...files, "package.json": JSON.stringify(description) })) {
        await Deno.writeTextFile(join(folder, "package", path), text, { mode: 0o755 });
      }
      // Packed twice, in another second perhaps.
      const same = ["--mtime=@0", "--sort=name"];
      const args = [
        "--create",
        "--gzip",
        ...same,
        `--file=${folder}.tgz`,
        `--directory=${folder}`,
        "package",
      ];
      assert.ok((await new Deno.Command("tar", { args }).output()).success);
      return await Deno.readFile(`${folder}.tgz`);
    };
    const pinned = integrityOf(await pack(files));
    const bytes = await pack(name === changed ? { ...files, deno: `${files.deno}# Changed.\n` } : files);
    archives.set(name, { description, pinned, bytes });
  }
  return archives;
}

function integrityOf(bytes: Uint8Array): string {
  return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
}

function lockOf(archives: ReadonlyMap<string, Archive>): object {
  const own = archives.entries().map(([name, { description, pinned: integrity }]) => [
    `node_modules/${name}`,
    { ...description, integrity, hasInstallScript: name === "deno", optional: name !== "deno" },
  ]);
  return { lockfileVersion: 3, requires: true, packages: { "": wanted, ...Object.fromEntries(own) } };
}

/** A package's description, or its archive: each agrees with the other, as at a registry that was taken over. */
function answer(request: Request, archives: ReadonlyMap<string, Archive>): Response {
  const { pathname, origin } = new URL(request.url);
  const name = decodeURIComponent(pathname.slice(1)).replace(/\.tgz$/, "");
  const archive = archives.get(name);
  if (archive === undefined) return new Response(undefined, { status: 404 });
  if (pathname.endsWith(".tgz")) return new Response(archive.bytes);
  const dist = { tarball: `${origin}/${name}.tgz`, integrity: integrityOf(archive.bytes) };
  return Response.json({
    name,
    "dist-tags": { latest: version },
    versions: { [version]: { ...archive.description, dist } },
  });
}
