import { systemToolPaths, type ToolName, type ToolPaths } from "../../src/host/tools.ts";
import { isThere } from "../../tools/host_command.ts";

/**
 * A tool of this machine wrapped by the lines of a shell script, in which `$tool` is the real one and `$times` counts
 * the runs, from 1. A run for the version goes directly to the real one.
 */
export function wrappedTool(folder: string, name: ToolName, lines: string): Partial<ToolPaths> {
  const real = systemToolPaths[name].find((path) => isThere(path));
  if (real === undefined) throw new Error(`${name} is not installed`);
  const path = `${folder}/${name}`;
  const script = [
    "#!/bin/sh",
    `tool=${real}`,
    'case "$*" in -V) exec "$tool" -V;; esac',
    `echo run >> ${path}.runs`,
    `times=$(wc -l < ${path}.runs)`,
    lines,
  ];
  Deno.writeTextFileSync(path, script.join("\n") + "\n", { mode: 0o755 });
  return { [name]: [path] };
}

/** How often the wrapped tool ran. */
export function runsOf(folder: string, name: ToolName): number {
  const path = `${folder}/${name}.runs`;
  return isThere(path) ? Deno.readTextFileSync(path).split("\n").length - 1 : 0;
}
