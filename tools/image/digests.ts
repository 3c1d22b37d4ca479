// Pins the images of the chart and the base of the Dockerfile: asks the registry of each, by skopeo, for the digest of
// its tag, and writes it there. `deno run -A tools/image/digests.ts [FILE]`

import { fileURLToPath } from "node:url";
import { complain, print } from "../print.ts";
import { imagesIn, withDigests } from "./chart_images.ts";
import { sha256 } from "./oci.ts";
import { hostBytes } from "../host_command.ts";

const FILES = ["chart/values.yaml", "image/Dockerfile"].map((path) =>
  fileURLToPath(new URL(`../../deploy/${path}`, import.meta.url))
);

/** The digest of what a kubelet would get: of the list of an image's platforms, where there is one. */
async function ask(name: string): Promise<string> {
  return await sha256(await hostBytes("skopeo", ["inspect", "--raw", `docker://${name}`]));
}

async function main(files: readonly string[]): Promise<number> {
  const problems: string[] = [];
  for (const file of files) {
    const written = await withDigests(await Deno.readTextFile(file), ask);
    await Deno.writeTextFile(file, written.values);
    for (const { name, digest } of imagesIn(written.values)) print(`${name} ${digest ?? "UNVERIFIED"}`);
    problems.push(...written.problems);
  }
  for (const problem of problems) complain(problem);
  if (files === FILES) print("next: make manifests");
  return problems.length === 0 ? 0 : 1;
}

Deno.exit(await main(Deno.args.length === 0 ? FILES : Deno.args));
