// Fails when modules of src/ import each other in a circle, types included: `deno run -A tools/verify_circles.ts`.
// A circle means that neither file can be read, moved or tested without the other.

import { fileURLToPath } from "node:url";
import { complain } from "./print.ts";

/**
 * A module in the output of `deno info --json`; in a dependency, `code` is an import of values and `type` one of types.
 */
interface ModuleInfo {
  readonly specifier: string;
  readonly dependencies?: readonly { readonly code?: Resolved; readonly type?: Resolved }[];
}

interface Resolved {
  readonly specifier?: string;
}

/**
 * The groups of modules that import each other, directly or through others; Tarjan's strongly connected components.
 *
 * @param imports the imports of each module
 */
export function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (module: string) => {
    const own = index.size;
    index.set(module, own);
    low.set(module, own);
    stack.push(module);
    for (const next of imports.get(module) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(module, Math.min(low.get(module)!, low.get(next)!));
    }
    if (low.get(module) !== own) return;
    const group = stack.splice(stack.indexOf(module));
    if (group.length > 1) found.push(group);
  };
  for (const module of imports.keys()) if (!index.has(module)) visit(module);
  return found;
}

async function readImports(root: string): Promise<Map<string, string[]>> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "src/main.ts"],
    cwd: fileURLToPath(root),
  }).output();
  const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as { modules: readonly ModuleInfo[] };
  const isOwn = (specifier = "") => specifier.startsWith(`${root}src/`) && !specifier.includes("/generated/");
  return new Map(
    modules.filter(({ specifier }) => isOwn(specifier)).map(({ specifier, dependencies = [] }) => [
      specifier.slice(root.length),
      dependencies.flatMap(({ code, type }) => [code?.specifier, type?.specifier])
        .filter((target): target is string => isOwn(target))
        .map((target) => target.slice(root.length)),
    ]),
  );
}

if (import.meta.main) {
  const groups = circles(await readImports(new URL("..", import.meta.url).href));
  for (const group of groups) complain(`these import each other: ${group.toSorted().join(", ")}`);
  Deno.exit(groups.length === 0 ? 0 : 1);
}
