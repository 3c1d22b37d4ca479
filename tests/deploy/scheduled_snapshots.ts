import assert from "node:assert/strict";
import { type Container, type KubernetesObject, only, parseObjects, readDeployFile } from "./objects.ts";

/** The path of the example below deploy/. */
export const exampleFile = "examples/scheduled-snapshots.yaml";

/** The fields of a CronJob that these tests read. */
export interface CronJob extends KubernetesObject {
  readonly spec: {
    readonly concurrencyPolicy: string;
    readonly jobTemplate: {
      readonly spec: {
        readonly backoffLimit: number;
        readonly template: {
          readonly spec: {
            readonly serviceAccountName: string;
            readonly containers: readonly (Container & { readonly command: readonly string[] })[];
          };
        };
      };
    };
  };
}

/** Returns the objects of the example, and the command of its CronJob. */
export function example() {
  const objects = parseObjects(readDeployFile(exampleFile));
  const cronJob = only<CronJob>(objects, "CronJob");
  const [container] = cronJob.spec.jobTemplate.spec.template.spec.containers;
  assert(container !== undefined);
  const env = Object.fromEntries((container.env ?? []).map(({ name, value }) => [name, value ?? ""]));
  return { objects, cronJob, container, env, words: [...container.command, ...container.args] };
}

/** The result of one run, and its output. */
export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the CronJob's command as its container does, with other values of some of its variables. */
export async function runExample(env: Readonly<Record<string, string>>): Promise<Run> {
  const { env: own, words: [program = "", ...args] } = example();
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args,
    clearEnv: true,
    env: { ...own, ...env },
    stdin: "null",
    signal: AbortSignal.timeout(120_000),
  }).output();
  const [out = "", err = ""] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  return { code, stdout: out, stderr: err };
}
