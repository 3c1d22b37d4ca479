// Runs the suites of tests/guest: `deno run -A tests/guest/run.ts [--no-skips] [--jobs=N] [NAME…]`.

import { join } from "node:path";
import { print } from "../../tools/print.ts";
import { buildSuite } from "../sanity/suite.ts";
import { archivePath } from "../image/release_files.ts";
import { binary, projectRoot } from "../support/parts.ts";
import { main } from "../support/suites.ts";
import { goIsHere, isFile } from "../../tools/host_command.ts";
import { hindrance } from "./kit/host_needs.ts";
import { guestImage } from "./kit/image.ts";
import { Bench, type Suite } from "./kit/suite.ts";
import { makeToolsDisk } from "./kit/tools_disk.ts";
import { defaultSuites, suites } from "./suites.ts";

/** What the guests run; what is not here is left out, and then the suites that need it are skipped. */
async function tools(folder: string): Promise<string> {
  // The running Deno itself; what npm puts in front of it may be a script.
  const files: Record<string, string> = { deno: await Deno.realPath("/proc/self/exe") };
  if (isFile(binary)) files["rds-csi"] = binary;
  if (goIsHere()) files["csi-sanity"] = await buildSuite(join(projectRoot, ".tools"));
  return await makeToolsDisk(folder, files);
}

function whySkipped(suite: Suite): string | undefined {
  const lacking = hindrance();
  if (lacking !== undefined) return lacking;
  if (suite.needsGo && !goIsHere()) return "Go, which builds csi-sanity, is not here";
  if (suite.needsImage && !isFile(archivePath("amd64"))) return "the image is not made; make image";
  if (suite.needsRoot && Deno.uid() !== 0) return "only root gives this machine an address";
  return suite.needsBinary && !isFile(binary) ? "dist/rds-csi is not built; make build" : undefined;
}

if (import.meta.main) {
  const scratch = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-guest-" });
  globalThis.addEventListener("unload", () => Deno.removeSync(scratch, { recursive: true }));
  await main({
    kind: "guest",
    all: suites,
    byDefault: defaultSuites,
    whySkipped,
    async prepare() {
      await guestImage("stable", print);
      const toolsPath = await tools(scratch);
      return async (name, signal) => {
        const folder = join(scratch, name);
        await Deno.mkdir(folder);
        return new Bench(name, folder, toolsPath, signal);
      };
    },
  });
}
