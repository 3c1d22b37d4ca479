import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle } from "../../../tools/build.ts";
import { quote } from "./agent.ts";
import type { Guest } from "./guest.ts";

/** A program of the tests' own that guests run. */
export interface GuestProgram {
  /** The script that becomes it. */
  script(...args: readonly string[]): string;
}

/**
 * Puts a TypeScript file, bundled, into guests, where their Deno runs it with all permissions.
 *
 * @param file URL of the file, as `new URL("x_inside.ts", import.meta.url)`
 * @param folder of the host, for the bundle
 */
export async function installProgram(
  file: URL,
  folder: string,
  guests: readonly Guest[],
): Promise<GuestProgram> {
  const name = file.pathname.replace(/.*\//, "").replace(/\.ts$/, "");
  await bundle(fileURLToPath(file), join(folder, name));
  const text = await Deno.readTextFile(join(folder, name, "main.js"));
  await Promise.all(guests.map((guest) => guest.write(`/root/${name}.js`, text)));
  const variables = "DENO_DIR=/tmp/deno DENO_NO_UPDATE_CHECK=1 NO_COLOR=1";
  const words = `/opt/tools/deno run --allow-all --no-config --no-lock --no-check /root/${name}.js`;
  return { script: (...args) => `${variables} exec ${[words, ...args.map(quote)].join(" ")}` };
}
