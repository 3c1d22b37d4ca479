// Pins the images of the chart: asks the registry of each, by skopeo, for the digest of its tag, and writes it into
// the values. `deno run -A tools/image/digests.ts [VALUES]`

import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { imagesIn, withDigests } from "./chart_images.ts";
import { sha256 } from "./oci.ts";
import { runForBytes } from "./run.ts";

const VALUES = fileURLToPath(new URL("../../deploy/chart/values.yaml", import.meta.url));

/** The digest of what a kubelet would get: of the list of an image's platforms, where there is one. */
async function ask(name: string): Promise<string> {
  return await sha256(await runForBytes("skopeo", ["inspect", "--raw", `docker://${name}`]));
}

async function main(file = VALUES): Promise<number> {
  const { values, problems } = await withDigests(await Deno.readTextFile(file), ask);
  await Deno.writeTextFile(file, values);
  for (const { name, digest } of imagesIn(values)) print(`${name} ${digest ?? "UNVERIFIED"}`);
  for (const problem of problems) complain(problem);
  if (file === VALUES) print("next: make manifests");
  return problems.length === 0 ? 0 : 1;
}

Deno.exit(await main(Deno.args[0]));
