import type { Processes } from "../../host/processes.ts";
import { allTools, packageOf, type ToolName } from "../../host/tools.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import type { CallContext } from "../../volume/ports/ports.ts";

const check = "tools";
const versionMs = 10_000;

/** How a tool, or all of a package's, is asked for its version where `-V` is not the way. */
const versionArguments: Readonly<Record<string, readonly string[]>> = {
  nvme: ["version"],
  coreutils: ["--version"],
  btrfs: ["--version"],
  // It has no such flag; without arguments it says its version and how it is used.
  resize2fs: [],
};

/** Tools that only one connector has a use for. */
const onlyFor: Readonly<Record<string, string>> = { losetup: "loop", nvme: "nvme-tcp" };

/** Whether every tool that the connector's node runs is there, and of which version: one finding a package. */
export async function checkTools(
  processes: Processes,
  connector: string,
  context: CallContext,
): Promise<readonly Finding[]> {
  const wanted = allTools.filter((tool) => (onlyFor[tool] ?? connector) === connector);
  const looks = await Promise.all(wanted.map((tool) => look(tool, processes, context)));
  return [...Map.groupBy(looks, ({ tool }) => packageOf(tool))].map(([name, ofPackage]) =>
    judge(name, ofPackage)
  );
}

interface Look {
  readonly tool: ToolName;
  readonly state: "there" | "missing" | "unclear";
  /** The version, or why it cannot be told. */
  readonly said: string;
}

async function look(tool: ToolName, processes: Processes, context: CallContext): Promise<Look> {
  const args = versionArguments[tool] ?? versionArguments[packageOf(tool)] ?? ["-V"];
  try {
    const { stdout, stderr } = await processes.run(tool, {
      args,
      signal: context.signal,
      subject: `version of ${tool}`,
      timeoutMs: versionMs,
    });
    const version = /\b[0-9]+\.[0-9]+(?:\.[0-9]+)*(?:[-.a-z0-9]*)/i.exec(`${stdout}\n${stderr}`)?.[0];
    return version === undefined
      ? { tool, state: "unclear", said: "it does not tell its version" }
      : { tool, state: "there", said: version };
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    const state = error.kind === "precondition" ? "missing" : "unclear";
    return { tool, state, said: error.message };
  }
}

function judge(name: string, looks: readonly Look[]): Finding {
  const named = (state: Look["state"]) => looks.filter((look) => look.state === state);
  const missing = named("missing").map(({ tool }) => tool);
  if (missing.length > 0) {
    return problem(
      check,
      `${missing.join(", ")} of ${name} not installed, or not where this executable may run it`,
      `apt-get install ${name}; the driver's image has it`,
    );
  }
  const unclear = named("unclear").map(({ tool, said }) => `${tool} (${said})`);
  if (unclear.length > 0) return warning(check, `${name}: ${unclear.join(", ")}`, `${name}: run it by hand`);
  const versions = [...new Set(looks.map(({ said }) => said))].join(", ");
  return fine(check, `${name} ${versions}: ${looks.map(({ tool }) => tool).join(", ")}`);
}
