// Renders deploy/manifests/rds-csi.yaml and deploy/chart/README.md from deploy/chart:
// `deno run -A tools/deploy/manifests.ts [--check]`. With --check it writes nothing and exits 1 when one is out of
// step; without
// Helm it says that it could not check.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { chartReadme, findHelm, renderings, renderingText } from "./helm.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The content of each file; undefined when the tool that makes it is missing. */
const wanted: Readonly<Record<string, () => string | undefined>> = {
  "deploy/manifests/rds-csi.yaml": () => {
    const helm = findHelm();
    const { values } = renderings.default;
    const head =
      `# Rendered from deploy/chart with ${values} by "make manifests"; deploy/README.md says what to fill in.\n`;
    return helm === undefined ? undefined : head + renderingText(helm, renderings.default);
  },
  "deploy/chart/README.md": chartReadme,
};

function main(check: boolean): number {
  let failed = 0;
  for (const [target, textOf] of Object.entries(wanted)) {
    const text = textOf();
    const path = join(ROOT, target);
    if (text === undefined) {
      complain(`SKIPPED: Helm is not here, so ${target} was NOT compared with the chart: make helm`);
      failed += check ? 0 : 1;
    } else if (!check) {
      Deno.writeTextFileSync(path, text);
      print(`written: ${target}`);
    } else if (Deno.readTextFileSync(path) !== text) {
      complain(`${target} is out of step with deploy/chart: make manifests`);
      failed++;
    }
  }
  return failed === 0 ? 0 : 1;
}

Deno.exit(main(Deno.args.includes("--check")));
