// Renders deploy/manifests/rds-csi.yaml from deploy/chart: `deno run -A tools/deploy/manifests.ts [--check]`. With --check it
// writes nothing and exits 1 when the file is out of step; without Helm it says that it could not look.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { findHelm, renderings, renderingText } from "./helm.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TARGET = "deploy/manifests/rds-csi.yaml";

function main(check: boolean): number {
  const helm = findHelm();
  if (helm === undefined) {
    complain("SKIPPED: Helm is not here, so deploy/manifests were NOT compared with the chart: make helm");
    return check ? 0 : 1;
  }
  const { values } = renderings.default;
  const text =
    `# Rendered from deploy/chart with ${values} by "make manifests"; deploy/README.md says what to fill in.\n` +
    renderingText(helm, renderings.default);
  if (!check) {
    Deno.writeTextFileSync(join(ROOT, TARGET), text);
    print(`written: ${TARGET}`);
  } else if (Deno.readTextFileSync(join(ROOT, TARGET)) !== text) {
    complain(`${TARGET} is out of step with deploy/chart: make manifests`);
    return 1;
  }
  return 0;
}

Deno.exit(main(Deno.args.includes("--check")));
