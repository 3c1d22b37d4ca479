import { join } from "node:path";
import { isFile } from "../../../tools/host_command.ts";

/** The settings that a kubelet changes for the whole machine. */
const names = [
  "vm/overcommit_memory",
  "vm/panic_on_oom",
  "kernel/panic",
  "kernel/panic_on_oops",
  "kernel/keys/root_maxkeys",
  "kernel/keys/root_maxbytes",
];

/** Saves the machine's present settings to a file of `folder`, where they outlive this process. */
export async function keepSettings(folder: string): Promise<void> {
  const values = names.map((name) => [name, Deno.readTextFileSync(`/proc/sys/${name}`)]);
  await Deno.writeTextFile(fileIn(folder), JSON.stringify(Object.fromEntries(values)));
}

/** Restores settings that have changed since {@linkcode keepSettings}, after the last kubelet has ended. */
export async function restoreSettings(folder: string): Promise<void> {
  if (!isFile(fileIn(folder))) return;
  const values = JSON.parse(await Deno.readTextFile(fileIn(folder))) as Record<string, string>;
  for (const [name, value] of Object.entries(values)) {
    const path = `/proc/sys/${name}`;
    if (await Deno.readTextFile(path) !== value) await Deno.writeTextFile(path, value);
  }
}

function fileIn(folder: string): string {
  return join(folder, "kernel-settings.json");
}
