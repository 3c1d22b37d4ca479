// Renders deploy/manifests and the examples from deploy/chart: `deno run -A tools/deploy/manifests.ts [--check]`. With
// --check it writes nothing and exits 1 when they are out of step; without Helm it says that it could not look.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { findHelm, renderChart } from "./helm.ts";
import { type Rendering, renderings } from "./renderings.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What is written; undefined, after a complaint, when it cannot be rendered. */
function textOf(helm: string, { values, apiVersions }: Rendering): string | undefined {
  const { success, yaml, complaint } = renderChart(helm, [values], [], apiVersions);
  if (success) {
    return `# Rendered from deploy/chart with ${values} by "make manifests"; deploy/README.md says what to fill in.\n` +
      yaml;
  }
  complain(complaint.trimEnd());
  return undefined;
}

function main(check: boolean): number {
  const helm = findHelm();
  if (helm === undefined) {
    complain("SKIPPED: Helm is not here, so deploy/manifests were NOT compared with the chart: make helm");
    return check ? 0 : 1;
  }
  let code = 0;
  for (const rendering of Object.values(renderings)) {
    const { target } = rendering;
    const text = textOf(helm, rendering);
    if (text === undefined) code = 1;
    else if (!check) {
      Deno.writeTextFileSync(join(ROOT, target), text);
      print(`written: ${target}`);
    } else if (Deno.readTextFileSync(join(ROOT, target)) !== text) {
      complain(`${target} is out of step with deploy/chart: make manifests`);
      code = 1;
    }
  }
  return code;
}

Deno.exit(main(Deno.args.includes("--check")));
