// What one command refuses, no other takes: a check-up that passes what `serve` refuses is worth nothing.
import assert from "node:assert/strict";
import { readAdoptOptions } from "../adopt/adopt.ts";
import { readAuditOptions } from "../audit/options.ts";
import { readDoctorHalves } from "../doctor/options.ts";
import { FlagError } from "../flags.ts";
import { readServeConfig, readVolumeCommand } from "./config.ts";
import { parseRoutersFile } from "./routers_file.ts";

const none = () => undefined;
const noFiles = { readText: none };
const reach = ["--rds-address", "10.0.0.1", "--rds-key", "/key", "--rds-host-key", "ssh-ed25519 AAAA"];
const controller = [...reach, "--cluster-id", "c"];

/** Every command that has the flags of a router. */
const commands: Readonly<Record<string, (args: readonly string[]) => unknown>> = {
  serve: (args) => readServeConfig(["--mode", "controller", "--kubernetes", "off", ...args], none),
  doctor: (args) => readDoctorHalves(args, none, noFiles),
  probe: (args) => readDoctorHalves(["--probe", "--base-path", "/a/b", ...args], none, noFiles),
  audit: (args) => readAuditOptions(args, none),
  release: (args) => readVolumeCommand(["pvc-1", ...args], none),
};

const wrong: readonly (readonly [args: readonly string[], problem: RegExp])[] = [
  [["--settle-time", "2d"], /^--settle-time cannot be "2d"/],
  [["--settle-time", "61m"], /^--settle-time /],
  [["--unexport-grace", "10"], /^--unexport-grace /],
  [["--unexport-grace", "301s"], /^--unexport-grace /],
  [["--backend", "Rack A"], /^--backend cannot be "Rack A"; use 1 to 32 characters/],
  [["--backend", "rack_a"], /^--backend /],
  [["--rds-password-file", "/p"], /^--rds-key and --rds-password-file exclude each other/],
  [["--rds-host-key", "host-key"], /^--rds-host-key cannot be "host-key"/],
  ...[
    "10.0.0.1:22",
    "ssh://10.0.0.1",
    "[fd00::1]",
    "10.0.0.1,10.0.0.2",
    "10.0.0.1 ",
    "10.0.0.256",
    "a_b",
    "a@b",
  ]
    .flatMap((address): [readonly string[], RegExp][] => [
      [
        ["--rds-address", address],
        /^--rds-address cannot be .*; use an IP address or a host name, without a port$/,
      ],
      [["--nvme-address", "10.1.0.1", "--rds-address", address], /^--rds-address cannot be /],
    ]),
  [["--rds-port", "0"], /^--rds-port /],
  [["--rds-port", "ssh"], /^--rds-port /],
  [["--nvme-port", "65536"], /^--nvme-port /],
  [["--nvme-address", "10.0.0.1 "], /^--nvme-address /],
  [["--overcommit", "0"], /^--overcommit /],
  [["--overcommit", "1,5"], /^--overcommit /],
  [["--known-node", "a b"], /^--known-node /],
  [["--base-path", "a"], /^--base-path /],
  [
    ["--base-path", "/a/b", "--base-path", "/a/b/c"],
    /^--base-path cannot be "\/a\/b\/c"; use a folder apart from \/a\/b$/,
  ],
  [["--base-path", "/a/b", "--base-path", "/a"], /^--base-path /],
  [["--base-path", "/a/b", "--base-path", "/a/b"], /^--base-path /],
  [["--nqn-prefix", "mine"], /^--nqn-prefix /],
  [["--rds-insecure-skip-verify=maybe"], /^--rds-insecure-skip-verify /],
  [["--router-profile", "/none"], /^--router-profile /],
];

for (const [args, problem] of wrong) {
  Deno.test(`every command refuses ${args.join(" ")}`, () => {
    for (const [name, read] of Object.entries(commands)) {
      // The probe has a base path of its own.
      if (name === "probe" && args[0] === "--base-path") continue;
      assert.throws(() => read([...controller, ...args]), (error) => {
        assert.ok(error instanceof FlagError, `${name}: ${error}`);
        assert.deepEqual(error.problems.filter((one) => !problem.test(one)), [], name);
        assert.equal(error.problems.length, 1, `${name}: ${error.message}`);
        return true;
      }, name);
    }
  });
}

Deno.test("a folder that has to be given is called missing, not empty", () => {
  const directory = ["--kind", "directory", ...controller];
  const reads = [
    () => readServeConfig(["--mode", "controller", "--kubernetes", "off", ...directory], none),
    () => readDoctorHalves(directory, none, noFiles),
    () => readDoctorHalves(["--probe", ...controller], none, noFiles),
  ];
  for (const read of reads) assert.throws(read, /^FlagError: --base-path is required[^\n]*$/);
  const two = ["--probe", "--base-path", "/a/b", "--base-path", "/a/c", ...controller];
  assert.throws(
    () => readDoctorHalves(two, none, noFiles),
    /--base-path cannot be "\/a\/b, \/a\/c"; use exactly one/,
  );
});

Deno.test("a volume that has to be given is called missing, with what an adoption takes in its place", () => {
  for (const args of [[], ["--claims"], ["--claims", ...controller]]) {
    assert.throws(
      () => readAdoptOptions(args, none),
      /^FlagError: VOLUME is required, or --from-cluster ID /,
    );
  }
  assert.throws(() => readVolumeCommand([], none), /^FlagError: VOLUME is required$/);
});

Deno.test("every command takes what is right", () => {
  for (const read of Object.values(commands)) {
    read([...controller, "--settle-time", "1h", "--backend", "rack-a", "--known-node", "n1"]);
  }
});

const file = (entry: string) =>
  `routers:\n- { name: a, address: 10.0.0.1, hostKeys: [ssh-ed25519 AAAA], ${entry} }\n`;
const inFile: readonly (readonly [entry: string, problem: RegExp])[] = [
  ["keyFile: /k, settleTime: 2d", /routers\[0\]\.settleTime cannot be "2d"/],
  [
    "keyFile: /k, passwordFile: /p",
    /routers\[0\]\.keyFile and .*routers\[0\]\.passwordFile exclude each other/,
  ],
  ["keyFile: /k, overcommit: 0", /routers\[0\]\.overcommit /],
];

for (const [entry, problem] of inFile) {
  Deno.test(`every command refuses a file of --config with ${entry}`, () => {
    const args = ["--config", "/f", "--cluster-id", "c"];
    const files = { readText: () => file(entry), parseRouters: parseRoutersFile };
    const reads = [
      () =>
        readServeConfig(
          ["--mode", "controller", "--kubernetes", "off", ...args],
          none,
          files.readText,
          files.parseRouters,
        ),
      () => readDoctorHalves(args, none, noFiles, files),
      () => readAuditOptions(args, none, files),
    ];
    for (const read of reads) {
      assert.throws(
        read,
        (error) => error instanceof FlagError && problem.test(error.message) && error.problems.length === 1,
      );
    }
  });
}

const serve = (args: readonly string[]) =>
  readServeConfig(["--mode", "controller", "--kubernetes", "off", ...args], none);

function problemsOf(args: readonly string[]): readonly string[] {
  try {
    serve(args);
    return [];
  } catch (error) {
    assert.ok(error instanceof FlagError);
    return error.problems;
  }
}

for (
  const [args, problem] of [
    [
      ["--mode", "controler"],
      /^--mode cannot be "controler"; use one of controller, node, all; did you mean controller\?$/,
    ],
    [["--mode", "Node"], /^--mode cannot be "Node"; .*did you mean node\?$/],
    [
      ["--kind", "directories"],
      /^--kind cannot be "directories"; use one of block, directory; did you mean directory\?$/,
    ],
    [[...controller, "--leader-election=maybe"], /^--leader-election cannot be "maybe"; use true or false$/],
    [[...controller, "--reconcile", "dryrun"], /^--reconcile .*did you mean dry-run\?$/],
    [[...controller, "--audit-interval", "90"], /^--audit-interval .*at most 168h$/],
    [[...controller, "--reconcile-grace", "30s"], /^--reconcile-grace .*at least 1m, at most 24h$/],
  ] as const
) {
  Deno.test(`readServeConfig() says one thing about ${args.slice(-2).join(" ")}`, () => {
    const problems = problemsOf(args);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0]!, problem);
  });
}

Deno.test("readServeConfig() reads a duration of several units, as Go and Kubernetes write them", () => {
  const { settings } = serve([...controller, "--settle-time", "0h45m30s"]).routers[0]!;
  assert.equal(settings.settleMs, 2_730_000);
});
