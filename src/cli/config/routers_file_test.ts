import assert from "node:assert/strict";
import { readServeConfig } from "./config.ts";
import { FlagError } from "../flags.ts";
import { backendClusterHash, clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { parseRoutersFile } from "./routers_file.ts";

const file = "/etc/rds-csi/routers.yaml";
const key = "ssh-ed25519 AAAA";

function read(text: string, args: readonly string[] = []) {
  return readServeConfig(
    ["--mode", "controller", "--cluster-id", "c", "--config", file, ...args],
    () => undefined,
    (path) => {
      if (path !== file) throw new Error(`no such file: ${path}`);
      return text;
    },
    parseRoutersFile,
  );
}

function problemsOf(text: string, args: readonly string[] = []): readonly string[] {
  try {
    read(text, args);
  } catch (error) {
    assert.ok(error instanceof FlagError, String(error));
    return error.problems;
  }
  return [];
}

function router(...lines: string[]): string {
  const [first, ...others] = [
    ...lines,
    `hostKeys: [${key}]`,
    "keyFile: /etc/rds-csi/key",
  ];
  return [`  - ${first}`, ...others.map((line) => `    ${line}`)].join("\n");
}

const two = [
  "routers:",
  router("name: nas1", "address: 10.0.0.1", "default: true"),
  router("name: nas2", "address: 10.0.0.2"),
]
  .join("\n");

Deno.test("a file names routers: the default one is like with flags, any other has a prefix of ids and NQNs", () => {
  const { routers: backends } = read(two);
  assert.deepEqual(
    backends.map((
      { ids, isDefault, settings },
    ) => [ids.text, isDefault, settings.backend, settings.nqnPrefix]),
    [
      ["", true, "nas1", "nqn.2000-02.com.mikrotik"],
      ["nas2/", false, "nas2", "nqn.2000-02.com.mikrotik:nas2"],
    ],
  );
  const [nas1, nas2] = backends.map(({ settings }) => settings.cluster);
  assert.equal(nas1, clusterHash("c"));
  assert.equal(nas2, backendClusterHash("c", "nas2/"));
  assert.notEqual(nas1, nas2);
});

Deno.test("every key of a router has the meaning of its flag", () => {
  const text = [
    "routers:",
    router(
      "name: nas2",
      "address: router.example",
      "port: 2222",
      "user: csi",
      "basePaths: [/pool/a, /pool/b]",
      "nvmeAddress: 10.1.0.1,10.1.0.2",
      "nvmePort: 4421",
      "settleTime: 60s",
      "unexportGrace: 0s",
      "overcommit: 1.5",
      "topology: {rack: a}",
    ),
  ].join("\n");
  const [{ router: reach, settings, topology } = assert.fail("there is no router")] = read(text).routers;
  assert.deepEqual(reach, {
    address: "router.example",
    port: 2222,
    user: "csi",
    keyFile: "/etc/rds-csi/key",
    passwordFile: undefined,
    hostKeys: [key],
    insecureSkipVerify: false,
  });
  const { basePaths, nvmeAddress, nvmePort, settleMs, unexportGraceMs, overcommit } = settings;
  assert.deepEqual(
    { basePaths, nvmeAddress, nvmePort, settleMs, unexportGraceMs, overcommit, topology },
    {
      basePaths: ["/pool/a", "/pool/b"],
      nvmeAddress: "10.1.0.1,10.1.0.2",
      nvmePort: 4421,
      settleMs: 60_000,
      unexportGraceMs: 0,
      overcommit: 1.5,
      topology: { rack: "a" },
    },
  );
});

Deno.test("all problems are reported at once, with file, key, value and what is allowed", () => {
  const text = [
    "routers:",
    "  - name: NAS 1",
    "    port: 70000",
    "    settleTime: soon",
    "    basePaths: [relative]",
    "    colour: blue",
    "  - name: nas2",
    "    default: true",
    "    address: 10.0.0.2",
    "    port: '22'",
    `    hostKeys: [${key}]`,
    "    keyFile: /key",
    "  - name: nas2",
    "    default: true",
    "    address: 10.0.0.2",
    `    hostKeys: [${key}]`,
    "    keyFile: /key",
    "  - 5",
    "others: []",
  ].join("\n");
  const problems = problemsOf(text, ["--rds-address", "10.0.0.9", "--log-level", "loud"]);
  const expected = [
    /^--log-level cannot be "loud"/,
    /^--rds-address has to be omitted/,
    /^\/etc\/rds-csi\/routers\.yaml: routers\[0\]\.name cannot be "NAS 1"; use 1 to 32 characters/,
    /routers\[0\]\.address is required/,
    /routers\[0\]\.port cannot be "70000"; use a whole number from 1 to 65535/,
    /routers\[0\]\.settleTime cannot be "soon"; use a duration/,
    /routers\[0\]\.basePaths cannot be "relative"/,
    /routers\[0\]\.keyFile is required .*routers\[0\]\.passwordFile is given/,
    /routers\[0\]\.hostKeys is required/,
    /routers\[0\]\.colour is not a key of a router: use one of name, default, address/,
    /routers\[1\]\.port cannot be "22"; use a whole number/,
    /routers\[2\]\.name cannot be "nas2" because routers\[1\] has that name/,
    /routers\[2\]\.default cannot be true because routers\[1\] is the default router/,
    /routers\[2\]\.basePaths cannot be ".*"; use a folder apart from those of routers\[1\]/,
    /routers\[3\] has to be a map/,
    /others is not a key of this file/,
  ];
  for (const form of expected) {
    assert.ok(problems.some((problem) => form.test(problem)), `${form} is not among\n${problems.join("\n")}`);
  }
  assert.equal(problems.length, expected.length, problems.join("\n"));
});

Deno.test("a folder of one router twice is refused however the address is written", () => {
  const problemsWith = (one: string, other: string) =>
    problemsOf([
      "routers:",
      router("name: nas1", `address: "${one}"`, "default: true"),
      router("name: nas2", `address: "${other}"`),
    ].join("\n"));
  for (
    const [one, other] of [
      ["nas.example.com", "NAS.example.com"],
      ["fd00::1", "FD00:0:0::1"],
      ["fd00::a00:1", "fd00::10.0.0.1"],
    ] as const
  ) {
    const [problem, ...more] = problemsWith(one, other);
    assert.match(problem ?? "", /routers\[1\]\.basePaths cannot be .*which has the same address/, other);
    assert.deepEqual(more, []);
  }
  assert.deepEqual(problemsWith("fd00::1", "fd00::2"), []);
});

Deno.test("values that may be secret are not repeated", () => {
  const secret = "hunter2-hunter2";
  const texts = [
    `routers:\n${router("name: a", "address: b", `password: ${secret}`)}`,
    `routers:\n  - name: a\n    address: b\n    hostKeys: [${key}]\n    passwordFile: ${secret}`,
    `routers:\n  - name: a\n    address: b\n    hostKeys: [${key}]\n    passwordFile: {${secret}: 1}`,
    `routers:\n  - name: a\n    passwordFile: "${secret}\n`,
    `routers:\n  - name: a\n    ${secret} = x y: 1\n`,
    `${secret}\n`,
    `routers: [*${secret}]`,
  ];
  for (const text of texts) {
    const problems = problemsOf(text);
    assert.ok(problems.length > 0, text);
    assert.ok(!problems.join("\n").includes(secret), problems.join("\n"));
  }
});

Deno.test("text that is not YAML, or has a key twice, is reported with its line", () => {
  assert.match(problemsOf("routers: [").join(), /routers\.yaml: line 1, column .* is not YAML/);
  assert.match(problemsOf("routers: []\nrouters: []").join(), /line 2, column 1 is not YAML: DUPLICATE_KEY/);
  for (const text of ["", "[]", "routers: 5", "routers: []"]) assert.equal(problemsOf(text).length, 1, text);
});

Deno.test("a topology is for all routers, with the same keys, or for none", () => {
  const text = (first: string, second: string) =>
    ["routers:", router("name: a", "address: x", first), router("name: b", "address: y", second)].join("\n");
  assert.deepEqual(problemsOf(text("topology: {rack: a}", "topology: {rack: b}")), []);
  assert.match(
    problemsOf(text("topology: {rack: a}", "default: true")).join(),
    /routers\[1\]\.topology cannot have no keys/,
  );
  assert.match(
    problemsOf(text("topology: {rack: a}", "topology: {zone: b}")).join(),
    /cannot have the keys zone/,
  );
  assert.match(
    problemsOf(text("topology: {rack: 5}", "topology: {rack: b}")).join(),
    /topology\.rack cannot be 5/,
  );
});

Deno.test("a file that cannot be read is reported with all other problems", () => {
  const missing = ["--mode", "controller", "--config", "/missing", "--log-level", "loud"];
  assert.throws(
    () =>
      readServeConfig(missing, () => undefined, () => {
        throw new Error("no such file");
      }, parseRoutersFile),
    (error) => {
      assert.ok(error instanceof FlagError);
      const problems = error.problems.join("\n");
      assert.match(
        problems,
        /--config cannot be "\/missing"; use a file that can be read \(no such file\)/,
      );
      assert.match(problems, /--log-level/);
      assert.match(problems, /--cluster-id is required/);
      return true;
    },
  );
});
