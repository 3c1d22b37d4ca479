import type { KernelFiles } from "../../host/kernel_files.ts";

/** The kernel's module files that are not under /proc and /sys. */
export interface ModuleFiles {
  /** The text of `modules.dep` or `modules.builtin` of the running kernel; undefined when it is not visible here. */
  read(name: "modules.dep" | "modules.builtin"): Promise<string | undefined>;
}

/** Whether a module is loaded, or built in with parameters. */
export function isPresent(files: KernelFiles, name: string): boolean {
  if (files.info(`/sys/module/${name}`) !== undefined) return true;
  return new RegExp(`^${name} `, "m").test(files.readText("/proc/modules") ?? "");
}

/** Whether the running kernel has a module with that file name; undefined when that is not visible here. */
export async function isLoadable(modules: ModuleFiles, file: RegExp): Promise<boolean | undefined> {
  const listed = [await modules.read("modules.dep"), await modules.read("modules.builtin")];
  if (listed.some((text) => file.test(text ?? ""))) return true;
  return listed.includes(undefined) ? undefined : false;
}
