import assert from "node:assert/strict";
import { FlagError } from "../../flags.ts";
import { clusterHash } from "../../volume/ids.ts";
import { doctorCommand } from "../doctor.ts";
import { readDoctorOptions } from "./options.ts";

const read = (...args: readonly string[]) => readDoctorOptions(args, () => undefined);
const reach = ["--rds-address", "10.0.0.1"];
const probe = [...reach, "--rds-key", "/key", "--rds-host-key", "ssh-ed25519 AAAA", "--probe"];

Deno.test("readDoctorOptions() needs an address, and nothing else", () => {
  const options = read(...reach);
  assert.deepEqual([options.json, options.probe, options.output, options.cluster], [
    false,
    false,
    "",
    undefined,
  ]);
  assert.deepEqual([options.nvmeAddress, options.nvmePort], ["10.0.0.1", 4420]);
  assert.deepEqual(options.basePaths, ["/storage-pool/metal-csi"]);
  assert.equal(read(...reach, "--cluster-id", "c").cluster, clusterHash("c"));
});

const wrong: readonly (readonly [args: readonly string[], flag: string])[] = [
  [[], "rds-address"],
  [[...reach, "--rds-password-file", "hunter2"], "rds-password-file"],
  [[...reach, "--base-path", "csi"], "base-path"],
  [probe, "base-path"],
  [[...probe, "--base-path", "/a/b", "--base-path", "/a/c"], "base-path"],
  [[...reach, "--probe", "--base-path", "/a/b", "--rds-host-key", "x"], "rds-key"],
  [[...reach, "--probe", "--base-path", "/a/b", "--rds-key", "/key"], "rds-host-key"],
  [[...reach, "--output", "/tmp/profile.json"], "output"],
  [[...reach, "--what"], "what"],
];

for (const [args, flag] of wrong) {
  Deno.test(`readDoctorOptions() refuses ${args.slice(2).join(" ") || "nothing"} and names --${flag}`, () => {
    assert.throws(
      () => read(...args),
      (error) => {
        assert.ok(error instanceof FlagError);
        assert.equal(error.problems.length, 1, error.message);
        assert.match(error.message, new RegExp(`^--${flag} `));
        assert.doesNotMatch(error.message, /hunter2/);
        return true;
      },
    );
  });
}

Deno.test("readDoctorOptions() takes a base path for the probe only where it is named", () => {
  const options = read(...probe, "--base-path", "/storage-pool/metal-csi", "--output", "/tmp/p.json");
  assert.deepEqual([options.probe, options.basePaths, options.output], [
    true,
    ["/storage-pool/metal-csi"],
    "/tmp/p.json",
  ]);
});

Deno.test("doctor --help names every flag", async () => {
  const printed: string[] = [];
  const io = {
    out: (line: string) => void printed.push(line),
    err: assert.fail,
    env: () => undefined,
    signal: new AbortController().signal,
  };
  assert.equal(await doctorCommand(["--help"], io), 0);
  for (const flag of ["json", "probe", "output", "rds-address", "base-path"]) {
    assert.match(printed.join("\n"), new RegExp(`--${flag}`));
  }
});
