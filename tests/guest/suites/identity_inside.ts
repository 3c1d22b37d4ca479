import { contentTests, readErrorTests, sizeTests } from "./identity_format_inside.ts";
import { interruptedTests } from "./identity_mkfs_inside.ts";
import { nameTests } from "./identity_names_inside.ts";
import { rebootTests } from "./identity_reboot_inside.ts";

const groups = {
  names: nameTests,
  reads: readErrorTests,
  sizes: sizeTests,
  contents: contentTests,
  reboots: rebootTests,
  mkfs: interruptedTests,
};

for (const name of Deno.args) await groups[name as keyof typeof groups].run();
