import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import plugin from "./verify_plugin.ts";

/** The problems that the project's lint rules report for a source at `path`. */
function problems(path: string, source: string): string[] {
  const filename = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return Deno.lint.runPlugin(plugin, filename, source).map(({ message }) => message);
}

const REFUSED_IMPORTS: readonly [path: string, source: string, problem: string][] = [
  ["src/volume/ids.ts", `import { a } from "../host/clock.ts";`, "volume never imports host"],
  ["src/volume/model/a.ts", `import { a } from "../ports/b.ts";`, "volume/model never imports volume/ports"],
  [
    "src/volume/ports/a.ts",
    `import type { A } from "../rules/b.ts";`,
    "volume/ports never imports volume/rules",
  ],
  ["src/volume/ids.ts", `import type { A } from "../csi/status.ts";`, "volume never imports csi"],
  ["src/volume/ids.ts", `import ssh2 from "ssh2";`, "volume never imports ssh2"],
  ["src/routeros/disks.ts", `import { a } from "../nvme/sysfs.ts";`, "routeros never imports nvme"],
  ["src/routeros/disks.ts", `import { a } from "../csi/status.ts";`, "routeros never imports csi"],
  [
    "src/routeros/disks.ts",
    `import type { Logger } from "../telemetry/log.ts";`,
    "routeros never imports telemetry",
  ],
  ["src/filesystem/mount.ts", `export { a } from "../loop/connector.ts";`, "filesystem never imports loop"],
  ["src/filesystem/mount.ts", `export * from "../loop/connector.ts";`, "filesystem never imports loop"],
  [
    "src/filesystem/mount.ts",
    `const a = await import("../loop/connector.ts");`,
    "filesystem never imports loop",
  ],
  ["src/filesystem/mount.ts", `type A = import("../loop/connector.ts").A;`, "filesystem never imports loop"],
  [
    "src/controller/volumes/create.ts",
    `import { taken } from "../records/take.ts";`,
    "only src/controller/records/loop.ts changes volumes: " +
    "src/controller/records/take.ts gives others its types alone",
  ],
  [
    "src/controller/create.ts",
    `import { a } from "../routeros/disks.ts";`,
    "controller never imports routeros",
  ],
  ["src/node/stage.ts", `import { a } from "../controller/create.ts";`, "node never imports controller"],
  ["src/node/stage.ts", `import { a } from "@grpc/grpc-js";`, "node never imports @grpc/grpc-js"],
  ["src/cli/serve.ts", `import { a } from "@grpc/grpc-js";`, "cli never imports @grpc/grpc-js"],
  ["src/cli/serve.ts", `import { a } from "../main.ts";`, "cli never imports main"],
  ["src/csi/controller.ts", `import { a } from "../routeros/disks.ts";`, "csi never imports routeros"],
  ["src/csi/controller.ts", `import { Client } from "ssh2";`, "csi never imports ssh2"],
  ["src/simulator/disks.ts", `import { a } from "../routeros/reply.ts";`, "simulator never imports routeros"],
  [
    "src/simulator/model/disks.ts",
    `import { a } from "../../volume/ids.ts";`,
    "simulator may import only types from volume",
  ],
  [
    "src/host/clock.ts",
    `import { a } from "../../tests/fakes/clock.ts";`,
    "the product never imports tests/fakes/clock.ts",
  ],
  [
    "src/csi/server.ts",
    `import { a } from "./server_test_support.ts";`,
    "the product never imports src/csi/server_test_support.ts",
  ],
  ["src/csi/server.ts", "const a = await import(`./${name}.ts`);", "only a literal can be imported"],
  [
    "src/nvme/fabrics.ts",
    `import { spawn } from "node:child_process";`,
    "node:child_process is reached for, not passed in",
  ],
  [
    "src/surprise/a.ts",
    `import { a } from "./b.ts";`,
    "the layer surprise is not declared in tools/verify_layers.ts",
  ],
];

for (const [path, source, problem] of REFUSED_IMPORTS) {
  Deno.test(`import-direction refuses ${source} in ${path}`, () => {
    assert.deepEqual(problems(path, source), [`${path}: ${problem}`]);
  });
}

const ACCEPTED_IMPORTS: readonly [path: string, source: string][] = [
  ["src/volume/digest.ts", `import { createHash } from "node:crypto"; import { a } from "./ids.ts";`],
  ["src/routeros/transport.ts", `import ssh2 from "ssh2"; import { a } from "../volume/errors.ts";`],
  [
    "src/csi/controller.ts",
    `import { a } from "../controller/create.ts"; import { b } from "@grpc/grpc-js";`,
  ],
  ["src/simulator/model/disks.ts", `import type { Clock } from "../../volume/ports.ts";`],
  ["src/simulator/model/disks.ts", `import { type Clock, type Random } from "../../volume/ports.ts";`],
  [
    "src/routeros/disks_test.ts",
    `import { a } from "../simulator/start.ts"; import b from "../../tests/fakes/clock.ts";`,
  ],
  ["tests/contract/disks.ts", `import { a } from "../../src/routeros/disks.ts";`],
  ["tests/fault/matrix.ts", "const a = await import(`./${name}`);"],
];

for (const [path, source] of ACCEPTED_IMPORTS) {
  Deno.test(`import-direction accepts ${source} in ${path}`, () => {
    assert.deepEqual(problems(path, source), []);
  });
}

const REFUSED_GLOBALS: readonly [source: string, name: string][] = [
  ["const a = Date.now();", "Date.now"],
  ["const now = Date.now;", "Date.now"],
  ["const a = new Date();", "Date.now"],
  ["const a = performance.now();", "performance.now"],
  ["const a = Math.random();", "Math.random"],
  ["const a = crypto.randomUUID();", "crypto.randomUUID"],
  ["setTimeout(() => {}, 1);", "setTimeout"],
  ["globalThis.setTimeout(() => {}, 1);", "setTimeout"],
  ["const a = AbortSignal.timeout(1);", "AbortSignal.timeout"],
  ["const a = new Deno.Command('/bin/true');", "Deno.Command"],
  ["const a = Deno.env.get('A');", "Deno.env"],
  ["const a = globalThis.Deno.env.get('A');", "Deno.env"],
  ["const a = Deno['env'].get('A');", "Deno.env"],
  ["const { env } = Deno;", "Deno.env"],
  ["const a = Deno.args[0];", "Deno.args"],
  ["Deno.exit(1);", "Deno.exit"],
  ["Deno.stdout.writeSync(bytes);", "Deno.stdout"],
  ["await text.pipeTo(Deno.stderr.writable);", "Deno.stderr"],
  ["const { stdout } = Deno;", "Deno.stdout"],
  ["const a = prompt(question);", "prompt"],
];

for (const [source, name] of REFUSED_GLOBALS) {
  Deno.test(`passed-in refuses ${source} in an adapter`, () => {
    const found = problems("src/nvme/fabrics.ts", source);
    assert.ok(found.includes(`src/nvme/fabrics.ts: ${name} is reached for, not passed in`), found.join("\n"));
  });
}

const ACCEPTED_GLOBALS: readonly [path: string, source: string][] = [
  ["src/host/clock.ts", "const a = Date.now(); setTimeout(() => {}, 1);"],
  ["src/cli/config/config.ts", "const a = Deno.env.get('A') ?? Deno.args[0];"],
  ["src/main.ts", "Deno.exit(1);"],
  ["src/telemetry/log.ts", "Deno.stderr.writeSync(bytes);"],
  ["src/nvme/fabrics.ts", "const a = new Date(clock.now()); // not Date.now()\nconst b = 'Deno.env';"],
  ["src/nvme/fabrics_test.ts", "const a = Date.now();"],
];

for (const [path, source] of ACCEPTED_GLOBALS) {
  Deno.test(`passed-in accepts ${JSON.stringify(source)} in ${path}`, () => {
    assert.deepEqual(problems(path, source), []);
  });
}

for (const name of ["Deno.exit", "Deno.stderr"]) {
  Deno.test(`passed-in refuses ${name} in src/host, which only main may use`, () => {
    assert.deepEqual(problems("src/host/clock.ts", `${name}(1);`), [
      `src/host/clock.ts: ${name} is reached for, not passed in`,
    ]);
  });
}

Deno.test("file-length accepts 500 lines and refuses 501", () => {
  assert.deepEqual(problems("src/nvme/a.ts", "a;\n".repeat(500)), []);
  assert.deepEqual(problems("src/nvme/a.ts", "a;\n".repeat(501)), [
    "src/nvme/a.ts has 501 lines, and 500 is the most",
  ]);
});

const FUNCTIONS: readonly [name: string, source: (body: string) => string][] = [
  ["plain", (body) => `function plain() {${body}}`],
  ["arrow", (body) => `const arrow = () => {${body}};`],
  ["method", (body) => `class A { method() {${body}} }`],
  ["property", (body) => `const a = { property() {${body}} };`],
  ["(anonymous)", (body) => `call(function () {${body}});`],
];

for (const [name, source] of FUNCTIONS) {
  Deno.test(`function-length accepts 60 lines and refuses 61 of ${source("…")}`, () => {
    assert.deepEqual(problems("src/nvme/a.ts", source("\n".repeat(59))), []);
    assert.deepEqual(problems("src/nvme/a.ts", source("\n".repeat(60))), [
      `src/nvme/a.ts: the function ${name} has 61 lines, and 60 is the most`,
    ]);
  });
}
