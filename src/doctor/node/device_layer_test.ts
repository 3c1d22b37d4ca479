import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import { checkDeviceLayer } from "./device_layer.ts";
import type { ModuleFiles } from "./modules.ts";

const unseen: ModuleFiles = { read: () => Promise.resolve(undefined) };
const listing = (dep: string): ModuleFiles => ({
  read: (name) => Promise.resolve(name === "modules.dep" ? dep : ""),
});
const dep = "kernel/drivers/md/dm-multipath.ko.xz: kernel/drivers/md/dm-mod.ko.xz\n";
const loaded = "/sys/module/dm_multipath";

const cases: readonly (readonly [
  what: string,
  nodes: readonly string[],
  modules: ModuleFiles,
  wanted: DeviceLayer,
  state: string,
  found: RegExp,
])[] = [
  ["loaded", [loaded], unseen, "none", "ok", /^dm_multipath is loaded; --device-layer is none$/],
  ["loadable", [], listing(dep), "auto", "ok", /can be loaded, by the first volume that needs it/],
  [
    "missing and not asked for",
    [],
    listing(""),
    "none",
    "skipped",
    /no dm_multipath; --device-layer is none/,
  ],
  [
    "missing, and done without",
    [],
    listing(""),
    "auto",
    "warning",
    /no dm_multipath; --device-layer is auto/,
  ],
  ["missing and needed", [], listing(""), "multipath", "problem", /no dm_multipath/],
  ["not seen", [], unseen, "multipath", "warning", /cannot see whether/],
];

for (const [what, nodes, modules, wanted, state, found] of cases) {
  Deno.test(`checkDeviceLayer() finds ${state} where dm-multipath is ${what}`, async () => {
    const files = new FakeKernelFiles();
    for (const path of nodes) files.nodes.set(path, { kind: "directory" });
    const finding = await checkDeviceLayer(files, modules, wanted);
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.equal(finding.fix !== undefined, state === "warning" || state === "problem");
  });
}
