// The workflows have never run: what can be read of them is in step with the project.
import assert from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { projectRoot } from "../support/parts.ts";

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<string, { readonly steps: readonly { readonly run?: string; readonly uses?: string }[] }>
  >;
}

const read = (path: string) => Deno.readTextFileSync(join(projectRoot, path));
const workflow = (name: string): Workflow => parse(read(`.github/workflows/${name}`));
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);
const runsOf = (name: string) => stepsOf(workflow(name)).flatMap(({ run }) => run === undefined ? [] : [run]);

Deno.test("every make target of a workflow exists", () => {
  const { tasks } = JSON.parse(read("deno.json")) as { tasks: Readonly<Record<string, unknown>> };
  const targets = ["check.yml", "release.yml"].flatMap(runsOf).flatMap((run) =>
    [...run.matchAll(/\bmake ([a-z/ ]+)/g)].flatMap(([, names]) => names!.trim().split(" "))
  );
  assert.ok(targets.length >= 8, `${targets}`);
  for (const target of targets) assert.ok(Object.hasOwn(tasks, target.replaceAll("/", ":")), target);
});

Deno.test("a workflow may only read, but for the job that releases", () => {
  for (const name of ["check.yml", "release.yml"]) {
    assert.deepEqual(workflow(name).permissions, { contents: "read" }, name);
  }
  assert.doesNotMatch(read(".github/workflows/check.yml"), /: write|secrets\./);
});

Deno.test("a release checks that the tag is the chart's version, before it publishes anything", () => {
  const runs = runsOf("release.yml");
  const at = (words: RegExp) => runs.findIndex((run) => words.test(run));
  assert.ok(at(/Chart\.yaml/) >= 0 && at(/Chart\.yaml/) < at(/make verify test/));
  assert.ok(at(/make verify test/) < at(/make release/) && at(/make release/) < at(/skopeo copy/));
  assert.match(read("deploy/chart/Chart.yaml"), /^version: [0-9]+\.[0-9]+\.[0-9]+/m);
});

Deno.test("the form for problems asks for describe and doctor, and the one for routers for the profile", () => {
  const ids = (name: string) =>
    (parse(read(`.github/ISSUE_TEMPLATE/${name}.yml`)) as { body: { id?: string }[] }).body.flatMap((
      { id },
    ) => id ?? []);
  assert.deepEqual(["describe", "doctor", "log"].filter((id) => !ids("problem").includes(id)), []);
  assert.deepEqual(["profile"].filter((id) => !ids("router").includes(id)), []);
});
