// Renders deploy/manifests from deploy/chart: `deno run -A tools/deploy/manifests.ts [--check]`. With --check it writes
// nothing and exits 1 when they are out of step; without Helm it says that it could not look.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { findHelm, renderChart } from "./helm.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TARGET = "deploy/manifests/rds-csi.yaml";
const VALUES = "deploy/manifests/values.yaml";
const HEADER =
  `# Rendered from deploy/chart with ${VALUES} by "make manifests"; deploy/README.md says what to fill in.\n`;

function main(check: boolean): number {
  const helm = findHelm();
  if (helm === undefined) {
    complain("SKIPPED: Helm is not here, so deploy/manifests were NOT compared with the chart: make helm");
    return check ? 0 : 1;
  }
  const { success, yaml, complaint } = renderChart(helm, [VALUES]);
  if (!success) {
    complain(complaint.trimEnd());
    return 1;
  }
  const file = join(ROOT, TARGET);
  if (!check) {
    Deno.writeTextFileSync(file, HEADER + yaml);
    print(`written: ${TARGET}`);
    return 0;
  }
  if (Deno.readTextFileSync(file) === HEADER + yaml) return 0;
  complain(`${TARGET} is out of step with deploy/chart: make manifests`);
  return 1;
}

Deno.exit(main(Deno.args.includes("--check")));
