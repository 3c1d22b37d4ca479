import assert from "node:assert/strict";
import { FlagError } from "../flags.ts";
import { directoryMark } from "../../volume/model/directory/names.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { readServeConfig } from "./config.ts";
import { maxDirectoryFolderBytes } from "./directories.ts";

const router = ["--rds-address", "10.0.0.1", "--rds-password-file", "/secret", "--rds-insecure-skip-verify"];
const base = ["--kind", "directory", "--mode", "controller", ...router, "--cluster-id", "c"];

function read(...flags: string[]) {
  return readServeConfig([...base, ...flags], () => undefined);
}

function refuses(flags: readonly string[], text: RegExp): void {
  assert.throws(() => read(...flags), (error) => {
    assert.ok(error instanceof FlagError, String(error));
    assert.match(error.message, text);
    return true;
  });
}

Deno.test("--kind directory reads the share from --base-path, and nothing of block volumes", () => {
  const config = read("--base-path", "/share/k8s", "--base-path", "/share/media");
  assert.deepEqual(config.directories?.settings, {
    cluster: directoryMark(clusterHash("c")),
    basePaths: ["/share/k8s", "/share/media"],
    addresses: [{ host: "10.0.0.1", port: 2049 }],
    settleMs: 120_000,
  });
  assert.deepEqual([config.kind, config.routers, config.node], ["directory", [], undefined]);
});

Deno.test("--kind directory has a driver name of its own unless one is given", () => {
  assert.equal(read("--base-path", "/share").driverName, "rds-directory.csi.srvlab.io");
  assert.equal(read("--base-path", "/share", "--driver-name", "nfs.example").driverName, "nfs.example");
});

Deno.test("--kind directory refuses folders of no share, of several, and those too long for a name", () => {
  assert.equal(maxDirectoryFolderBytes, 20);
  refuses([], /--base-path/);
  refuses(["--base-path", "/share", "--base-path", "/other"], /one share/);
  refuses(["--base-path", "/share/a.20240101"], /as volumes do/);
  refuses(["--base-path", "/share/".padEnd(21, "x")], /at most 20/);
  refuses(["--base-path", "/share", "--config", "/routers.yaml"], /one share of one router/);
});

Deno.test("--kind block is the default, and reads no directories", () => {
  const config = readServeConfig(["--mode", "controller", ...router, "--cluster-id", "c"], () => undefined);
  assert.deepEqual([config.kind, config.directories, config.driverName], [
    "block",
    undefined,
    "rds.csi.srvlab.io",
  ]);
});
