import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { checkEncryption } from "./encryption.ts";
import type { ModuleFiles } from "./modules.ts";

const unseen: ModuleFiles = { read: () => Promise.resolve(undefined) };
const listing = (dep: string): ModuleFiles => ({
  read: (name) => Promise.resolve(name === "modules.dep" ? dep : ""),
});
const dep = "kernel/drivers/md/dm-crypt.ko.xz: kernel/drivers/md/dm-mod.ko.xz\n";

const cases: readonly (readonly [
  what: string,
  isLoaded: boolean,
  modules: ModuleFiles,
  state: string,
  found: RegExp,
])[] = [
  ["loaded", true, unseen, "ok", /^dm_crypt is loaded$/],
  ["loadable", false, listing(dep), "ok", /can be loaded/],
  ["missing", false, listing(""), "skipped", /has no dm_crypt: encrypted volumes cannot be staged here/],
  ["not seen", false, unseen, "skipped", /cannot see whether/],
];

for (const [what, isLoaded, modules, state, found] of cases) {
  Deno.test(`checkEncryption() finds ${state} where dm-crypt is ${what}`, async () => {
    const files = new FakeKernelFiles();
    if (isLoaded) files.nodes.set("/sys/module/dm_crypt", { kind: "directory" });
    const finding = await checkEncryption(files, modules);
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
  });
}
