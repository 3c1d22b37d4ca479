import assert from "node:assert/strict";
import { join } from "node:path";
import { parseObjects } from "../../../deploy/objects.ts";
import type { Block } from "../../../docs/pages.ts";
import { hostOutput, isFile } from "../../../../tools/host_command.ts";
import { binary, programOf, projectRoot } from "../../../support/parts.ts";
import type { Bench } from "../../kit/bench.ts";
import { Chart, type ChartOptions } from "../../kit/chart.ts";
import type { Cluster, Installed, Uninstalled } from "../../kit/cluster.ts";
import { untilGranted } from "../../kit/deployment.ts";
import { packImage, peoplesImage } from "../../kit/image.ts";
import type { Router } from "../../kit/router.ts";

/** What the rig gives by values, as to every suite: nothing looks for the images, and nobody waits for loop devices. */
export const rigValues = {
  controller: {
    extraArgs: ["--unexport-grace=0s"],
    nodeSelector: { "rds-csi.test/runs-pods-of-the-chart": "true" },
  },
  node: { nodeSelector: { "rds-csi.test/runs-pods-of-the-chart": "true" } },
  simulator: { nodeSelector: { "rds-csi.test/runs-pods-of-the-chart": "true" } },
  sidecars: { logLevel: 3 },
};

/** Tests that type one block each. */
export function pageSteps(person: PagePerson, blocks: readonly Block[]): PageSteps {
  return blocks.map((block) => {
    const [first = ""] = block.text.split("\n");
    const name = `${block.heading}, line ${block.line}: ${first.slice(0, 60)}`;
    return [name, () => person.type(block)];
  });
}

type PageSteps = readonly (readonly [name: string, body: () => Promise<string>])[];

/** A test for each block; the first that fails ends the suite. */
export async function type(bench: Bench, person: PagePerson, blocks: readonly Block[]): Promise<void> {
  for (const [name, body] of pageSteps(person, blocks)) {
    if (!await bench.test(name, body)) throw new Error(`The page ends at ${name}`);
  }
}

/**
 * The release as Helm knows it, with its namespace and its Secret, which the page has made itself.
 *
 * @param options what the rig does otherwise than the page
 */
export async function installed(
  { folder, plane, tools }: Uninstalled,
  options: Partial<ChartOptions> = {},
): Promise<Installed> {
  const admin = ["--kubeconfig", await plane.kubeconfig("admin")];
  const manifest = await hostOutput(tools.helm, ["get", "manifest", "rds-csi", "-n", "rds-csi", ...admin]);
  const namespace = await plane.api.get<object>("/api/v1/namespaces/rds-csi");
  const objects = parseObjects(`${JSON.stringify({ kind: "Namespace", ...namespace })}\n---\n${manifest}`);
  const chart = Chart.of(objects, { controllerArgs: rigValues.controller.extraArgs, ...options });
  await untilGranted(plane, chart);
  const credentials = join(folder, "credentials");
  await Deno.mkdir(credentials, { mode: 0o700 });
  const secret = await plane.api.get<{ data: Record<string, string> }>(
    "/api/v1/namespaces/rds-csi/secrets/rds-csi-secret",
  );
  for (const [name, value] of Object.entries(secret.data)) {
    await Deno.writeTextFile(join(credentials, name), atob(value), { mode: 0o400 });
  }
  return { chart, credentials };
}

/** The pod of the page has an image that nobody can download here. */
export async function importImage(cluster: Cluster, bench: Bench): Promise<void> {
  const archive = join(bench.folder, "busybox.tar");
  await packImage(archive, peoplesImage);
  await cluster.node("n1").runtime.importImage(archive);
}

/** Longest that one block may take, in milliseconds. */
const blockMs = 7 * 60_000;

/** What stands on the page for what only its reader knows, and what the rig has there. */
const placeholders = (address: string, network: string): readonly (readonly [string, string])[] => [
  ["10.0.0.1", address],
  ["10.0.0.0/16", network],
  ["registry.example.net/rds-csi", "rds-csi"],
];

/** The cluster and the router to which someone's programs go. */
export type PersonsCluster = Pick<Uninstalled, "plane" | "tools"> & {
  readonly router: Pick<Router, "control" | "violations">;
};

/** Someone who types a page's blocks as they stand there: into a shell, and into the terminal of the router. */
export class PagePerson {
  /** Everything of theirs: their programs, and what is remembered from one block to the next. */
  readonly folder: string;
  readonly #address: string;
  readonly #network: string;
  #location: PersonsCluster | undefined;

  private constructor(folder: string, address: string, network: string) {
    this.folder = folder;
    this.#address = address;
    this.#network = network;
  }

  /**
   * @param address the router's
   * @param values what the rig gives to `helm install` beside the page's own values
   * @param network from which they and the nodes come to the router
   */
  static async make(
    bench: Pick<Bench, "folder">,
    address: string,
    values: object,
    network = "127.0.0.0/8",
  ): Promise<PagePerson> {
    const folder = join(bench.folder, "person");
    await Deno.mkdir(join(folder, "bin"), { recursive: true });
    await Deno.writeTextFile(join(folder, "rig-values.json"), JSON.stringify(values));
    await Deno.writeTextFile(join(folder, "cwd"), projectRoot);
    await Deno.writeTextFile(join(folder, "exports"), "");
    return new PagePerson(folder, address, network);
  }

  /** Gives them the programs that people have, and a cluster to which these go. */
  async begin(location: PersonsCluster): Promise<void> {
    this.#location = location;
    const helm = `[ "$1" = install ] && set -- "$@" --values "${join(this.folder, "rig-values.json")}"\n` +
      `exec "${location.tools.helm}" "$@"`;
    const programs = {
      kubectl: `exec "${location.tools.program("kubectl")}" --cache-dir "${
        join(this.folder, "kubectl")
      }" "$@"`,
      helm,
      // The administrator's own configuration: a key in the place of a password that nobody can type here.
      ssh: `exec /usr/bin/ssh -F "${join(this.folder, "ssh_config")}" "$@"`,
      "rds-csi": `exec ${programOf(isFile(binary) ? "binary" : "sources").map(quoted).join(" ")} "$@"`,
    };
    for (const [name, script] of Object.entries(programs)) {
      await Deno.writeTextFile(join(this.folder, "bin", name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
    const config = `IdentityFile ${join(this.folder, "admin-key")}\nIdentitiesOnly yes\nBatchMode yes\n`;
    await Deno.writeTextFile(join(this.folder, "ssh_config"), config);
  }

  /** Where their shell has come to. */
  async workingFolder(): Promise<string> {
    return (await Deno.readTextFile(join(this.folder, "cwd"))).trim();
  }

  /** Removes the folder that a page has made for them in /tmp. */
  async [Symbol.asyncDispose](): Promise<void> {
    const folder = await this.workingFolder();
    if (folder.startsWith("/tmp/tmp.")) await Deno.remove(folder, { recursive: true });
  }

  /**
   * Types one block, and answers what came of it. Before there is a cluster, only a shell takes any.
   *
   * @throws {Error} for a block of a language that nobody can run, and when the router or the shell complains
   */
  async type({ language, text }: Block): Promise<string> {
    const typed = placeholders(this.#address, this.#network)
      .reduce((all, [from, to]) => all.replaceAll(from, to), text);
    if (this.#location === undefined) return await this.#typeToShell(typed, language);
    const { router } = this.#location;
    assert.deepEqual(await router.violations(), [], "the driver broke a rule of the router's");
    await router.control("/log", { method: "DELETE" });
    const reported = language === "routeros"
      ? await this.#typeToRouter(typed)
      : await this.#typeToShell(typed, language);
    await this.#assertRouterContent();
    // An administrator may do what the driver must not.
    if (language === "routeros" || typed.includes("admin@")) {
      await router.control("/violations", { method: "DELETE" });
    }
    return reported;
  }

  get #here(): PersonsCluster {
    if (this.#location === undefined) throw new Error("There is no cluster yet");
    return this.#location;
  }

  /** Line by line, as a terminal takes what is pasted. */
  async #typeToRouter(text: string): Promise<string> {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    const known = join(this.folder, "admin-known-hosts");
    const options = ["-F", join(this.folder, "ssh_config"), "-o", `UserKnownHostsFile=${known}`];
    for (const line of lines) {
      const wording = [...options, "-o", "StrictHostKeyChecking=accept-new", `admin@${this.#address}`, line];
      await hostOutput("ssh", wording);
    }
    return `${lines.length} lines`;
  }

  /** In a shell of its own that begins where the last one has ended, and stops at the first failure. */
  async #typeToShell(text: string, language: string): Promise<string> {
    assert.equal(language, "sh", "every block is for the router's terminal or for a shell");
    const script =
      `set -euo pipefail; cd "$(cat "$PERSON/cwd")"; . "$PERSON/exports"; export PATH="$PERSON/bin:$PATH"
${text}
pwd >"$PERSON/cwd"; export -p >"$PERSON/exports"`;
    const { success, code, stdout, stderr } = await new Deno.Command("bash", {
      args: ["-c", script],
      clearEnv: true,
      env: {
        PERSON: this.folder,
        HOME: this.folder,
        TMPDIR: this.folder,
        // Where the sources' packages are, if it is the sources that run.
        DENO_DIR: Deno.env.get("DENO_DIR") ?? join(Deno.env.get("HOME") ?? "", ".cache/deno"),
        PATH: `${join(binary, "..")}:/usr/sbin:/usr/bin:/sbin:/bin`,
        ...this.#location === undefined ? {} : { KUBECONFIG: await this.#location.plane.kubeconfig("admin") },
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(blockMs),
    }).output();
    const [out, complaint] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
    if (!success) throw new Error(`it ended with ${code}:\n${complaint}\n${out}`);
    return out?.split("\n").at(-1)?.slice(0, 120) || "done";
  }

  /** Over SSH a refused command ends as well as any other; the router's own log tells. */
  async #assertRouterContent(): Promise<void> {
    const log = await this.#here.router.control<
      readonly { readonly command: string; readonly outcome: string }[]
    >(
      "/log",
    );
    // A probe asks for what a router refuses.
    const refused = log.filter(({ command, outcome }) =>
      outcome !== "ok" && outcome !== "running" && !command.includes("rds-csi-probe-")
    );
    assert.deepEqual(refused, []);
  }
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
