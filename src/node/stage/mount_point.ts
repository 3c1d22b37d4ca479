import type { MountEntry } from "../../volume/ports/ports.ts";
import type { NodeWorld } from "../deps.ts";

/**
 * How the kernel writes a staging path as a mount point. Where the mount table shows the folder that it lies in on the file
 * system of this driver's own state, no child is needed to look: if that hangs, nothing here goes on anyway.
 */
export async function stagingPoint(world: NodeWorld, path: string): Promise<string> {
  const at = path.lastIndexOf("/");
  const [folder, name] = [path.slice(0, at) || "/", path.slice(at + 1)];
  const table = await world.mounts.table();
  const own = mountOf(table, world.settings.statePath);
  if (own !== undefined && mountOf(table, folder) === own) {
    const real = await world.paths.realPath(folder);
    if (real !== undefined) return `${real === "/" ? "" : real}/${name}`;
  }
  return await world.paths.mountPoint(path);
}

/** The mount that a path lies on, as far as its text says. */
function mountOf(table: readonly MountEntry[], path: string): MountEntry | undefined {
  const covers = ({ mountPoint }: MountEntry) =>
    mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
  // Of several at one place the last one is on top.
  return table.filter(covers).toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
}
