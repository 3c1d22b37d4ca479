import assert from "node:assert/strict";
import { FakeNode } from "../../tests/fakes/node_world.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";
import { stagingPoint } from "./mount_table.ts";

const entry = (mountPoint: string, deviceNumber: string): MountEntry => ({
  ...{ mountId: 1, parentId: 0, deviceNumber, root: "/", mountPoint, mountOptions: [] },
  ...{ filesystem: "ext4", source: "/dev/sda", superOptions: [] },
});

/** What is asked about a staging path when that is the mount table, and where it leads. */
async function asked(table: readonly MountEntry[], path: string): Promise<readonly string[]> {
  const world = new FakeNode().world;
  const told: string[] = [];
  const paths = {
    ...world.paths,
    realPath: (folder: string) => {
      told.push(`thread ${folder}`);
      return Promise.resolve(folder === "/kubelet/missing" ? undefined : folder.replace("/link", "/real"));
    },
    mountPoint: (point: string) => {
      told.push(`child ${point}`);
      return Promise.resolve(point);
    },
  };
  const mounts = { ...world.mounts, table: () => Promise.resolve(table) };
  const settings = { ...world.settings, statePath: "/kubelet/plugins/state" };
  const point = await stagingPoint({ ...world, paths, mounts, settings }, path);
  return [point, ...told];
}

const root = entry("/", "8:1");
const cases: readonly [string, readonly MountEntry[], string, readonly string[]][] = [
  ["on the file system of the state", [root], "/kubelet/link/x", ["/kubelet/real/x", "thread /kubelet/link"]],
  ["below the mount of both", [root, entry("/kubelet", "8:2")], "/kubelet/a/x", [
    "/kubelet/a/x",
    "thread /kubelet/a",
  ]],
  ["below another mount", [root, entry("/kubelet/a", "0:50")], "/kubelet/a/b/x", [
    "/kubelet/a/b/x",
    "child /kubelet/a/b/x",
  ]],
  [
    "in a mount that covers another",
    [root, entry("/kubelet", "8:2"), entry("/kubelet/a", "8:2")],
    "/kubelet/a/x",
    [
      "/kubelet/a/x",
      "child /kubelet/a/x",
    ],
  ],
  ["in a folder that is missing", [root], "/kubelet/missing/x", [
    "/kubelet/missing/x",
    "thread /kubelet/missing",
    "child /kubelet/missing/x",
  ]],
  ["where no mount is known", [], "/kubelet/a/x", ["/kubelet/a/x", "child /kubelet/a/x"]],
];
for (const [name, table, path, expected] of cases) {
  Deno.test(`stagingPoint() of a path ${name} asks ${expected.slice(1).join(", then ")}`, async () => {
    assert.deepEqual(await asked(table, path), expected);
  });
}
