// Debian's engines, unpacked but not installed, because an installation would start their daemons.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { hostOutput, isThere } from "../../tools/host_command.ts";
import { downloadPackages } from "../support/debian_archive.ts";
import { cacheFolder } from "../../tools/image/root.ts";

const packages = ["containerd", "runc", "docker.io", "docker-registry"];

/** The longest time for a daemon to answer, and to end, in milliseconds. */
const startMs = 60_000;

/** Returns the PATH of the engines, which are unpacked on the first call, and kept. */
export async function ensureEngines(): Promise<string> {
  const digest = createHash("sha256").update(packages.join()).digest("hex").slice(0, 16);
  const folder = join(cacheFolder(), `image-engines-${digest}`);
  if (!isThere(folder)) await unpackEngines(folder);
  return [`${folder}/usr/sbin`, `${folder}/usr/bin`, "/usr/sbin:/usr/bin:/sbin:/bin"].join(":");
}

/** Two test files may unpack at the same time: each unpacks into its own folder, and the first one is kept. */
async function unpackEngines(folder: string): Promise<void> {
  await Deno.mkdir(cacheFolder(), { recursive: true });
  const beside = await Deno.makeTempDir({ dir: cacheFolder(), prefix: "image-engines-" });
  try {
    const apt = join(beside, "apt");
    for (const deb of await downloadPackages(apt, packages)) {
      await hostOutput("dpkg-deb", ["--extract", deb, beside]);
    }
    await Deno.remove(apt, { recursive: true });
    await Deno.rename(beside, folder);
  } catch (error) {
    await Deno.remove(beside, { recursive: true });
    if (!isThere(folder)) throw error;
  }
}

/** Runs a program from the engines' PATH with arguments. */
export async function engineOutput(program: string, args: readonly string[]): Promise<string> {
  const path = await ensureEngines();
  return await hostOutput("env", [`PATH=${path}`, program, ...args]);
}

/** Starts a daemon, uses it once it answers, and ends it. */
export async function withDaemon(
  command: readonly string[],
  answers: () => Promise<unknown>,
  use: () => Promise<void>,
): Promise<void> {
  const log = await Deno.makeTempFile({ prefix: "rds-csi-image-log-" });
  const script = 'log=$1; shift; exec "$@" >"$log" 2>&1';
  const child = new Deno.Command("sh", {
    args: ["-c", script, "sh", log, ...command],
    env: { PATH: await ensureEngines() },
    stdin: "null",
  }).spawn();
  try {
    await until(answers).catch(async (error) => {
      throw new Error(`${command[0]} does not answer:\n${await Deno.readTextFile(log)}`, { cause: error });
    });
    await use();
  } finally {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), startMs);
    await child.status;
    clearTimeout(timer);
    await Deno.remove(log);
  }
}

async function until(answers: () => Promise<unknown>): Promise<void> {
  for (const end = performance.now() + startMs;;) {
    try {
      await answers();
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
