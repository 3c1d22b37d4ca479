import assert from "node:assert/strict";
import { join } from "node:path";
import { blocksOf, readPage } from "../docs/pages.ts";
import { projectRoot } from "../support/parts.ts";
import { type Binding, type KubernetesObject, only, parseObjects, type Rule } from "./objects.ts";
import { type CronJob, example, type Run, runExample } from "./scheduled_snapshots.ts";
import { makeScratch } from "../support/scratch.ts";

// The suite scheduled_snapshots of tests/cluster runs the same against a real API server.

Deno.test("the account of scheduled snapshots may create, list and delete snapshots of its namespace, and no more", () => {
  const { objects, cronJob } = example();
  assert.deepEqual(objects.map(({ kind }) => kind).toSorted(), [
    ...["CronJob", "Role", "RoleBinding", "ServiceAccount"],
  ]);
  const { rules, metadata } = only<KubernetesObject & { rules: readonly Rule[] }>(objects, "Role");
  assert.deepEqual(rules, [{
    apiGroups: ["snapshot.storage.k8s.io"],
    resources: ["volumesnapshots"],
    verbs: ["create", "list", "delete"],
  }]);
  const { subjects, roleRef } = only<Binding>(objects, "RoleBinding");
  const account = only(objects, "ServiceAccount").metadata;
  assert.deepEqual(subjects, [{ kind: "ServiceAccount", name: account.name, namespace: account.namespace }]);
  assert.equal(roleRef.name, metadata.name);
  assert.equal(cronJob.spec.jobTemplate.spec.template.spec.serviceAccountName, account.name);
  assert.equal(new Set(objects.map(({ metadata: { namespace } }) => namespace)).size, 1);
});

Deno.test("runs of scheduled snapshots do not overlap, are not repeated at once, and have no privilege", () => {
  const { cronJob: { spec }, container } = example();
  assert.deepEqual([spec.concurrencyPolicy, spec.jobTemplate.spec.backoffLimit], ["Forbid", 0]);
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
});

Deno.test("the guide's command changes the namespace and claim of the example", async () => {
  const { text } = blocksOf(readPage("docs/guides/snapshots.md"))
    .find(({ heading }) => heading === "On a schedule") ?? assert.fail("no command");
  const [command = "", applied] = text.split(" | kubectl apply");
  assert.equal(applied, " -f -");
  const { stdout } = await new Deno.Command("sh", { args: ["-ec", command], cwd: projectRoot }).output();
  const objects = parseObjects(new TextDecoder().decode(stdout));
  assert.deepEqual([...new Set(objects.map(({ metadata }) => metadata.namespace))], ["shop"]);
  assert.equal(only<Binding>(objects, "RoleBinding").subjects[0]?.namespace, "shop");
  const { metadata, spec } = only<CronJob>(objects, "CronJob");
  const env = spec.jobTemplate.spec.template.spec.containers[0]?.env ?? [];
  const value = (wanted: string) => env.find(({ name }) => name === wanted)?.value;
  assert.deepEqual([metadata.name, value("SCHEDULE"), value("CLAIM")], [
    ...["orders-nightly", "orders-nightly", "orders"],
  ]);
});

/** The ready state that `kubectl create` lists for a new snapshot. */
type NewState = "true" | "false" | "<none>";

/** A kubectl that keeps its snapshots as lines of a file, as the script lists them, and refuses unexpected commands. */
const kubectl = (newState: NewState) =>
  `#!/bin/sh
echo "$1 $2 $3" >>"$STATE/asked"
case $1 in
  get) case $* in
    *field-selector*) echo "the router refused it" ;;
    *) cat "$STATE/snapshots" ;;
  esac ;;
  create) while read -r key value; do
    if [ "$key" = name: ]; then echo "$value ${newState} <none>" | tr -d '"' >>"$STATE/snapshots"; fi
  done ;;
  delete) grep -v "^$3 " "$STATE/snapshots" >"$STATE/left"; mv "$STATE/left" "$STATE/snapshots" ;;
  *) exit 9 ;;
esac
`;

/** Runs the script once with these existing snapshots. Returns the snapshots that are left. */
async function runBeside(
  snapshots: readonly string[],
  env: Readonly<Record<string, string>>,
  newState: NewState = "true",
): Promise<Run & { readonly left: readonly string[]; readonly asked: readonly string[] }> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await Deno.writeTextFile(join(folder, "kubectl"), kubectl(newState), { mode: 0o755 });
  await Deno.writeTextFile(join(folder, "snapshots"), snapshots.map((line) => `${line}\n`).join(""));
  await Deno.writeTextFile(join(folder, "asked"), "");
  const run = await runExample({ PATH: `${folder}:/usr/bin:/bin`, STATE: folder, ...env });
  const lines = async (name: string) =>
    (await Deno.readTextFile(join(folder, name))).split("\n").filter((line) => line !== "");
  const left = (await lines("snapshots")).map((line) => line.split(" ")[0]!);
  return { ...run, left, asked: await lines("asked") };
}

Deno.test("a run makes a snapshot named after the time, and keeps the newest ready ones", async () => {
  const before = [
    "a true <none>",
    "broken false <none>",
    "b true <none>",
    "c true 2026-01-01T00:00:00Z",
    "d true <none>",
  ];
  const { code, stderr, left } = await runBeside(before, { KEEP: "2" });
  assert.equal(code, 0, stderr);
  assert.match(left.at(-1)!, /^data-nightly-\d{8}-\d{6}$/);
  assert.deepEqual(left.slice(0, -1), ["broken", "c", "d"]);
  assert.match(stderr, /^broken is not ready/);
});

Deno.test("a run deletes nothing while there are no more snapshots than it keeps", async () => {
  const { code, left, asked } = await runBeside(["a true <none>"], { KEEP: "2" });
  assert.deepEqual([code, left.length], [0, 2]);
  assert.deepEqual(asked.filter((words) => words.startsWith("delete")), []);
});

for (const state of ["false", "<none>"] as const) {
  Deno.test(`a run whose snapshot does not get ready fails, says why, and deletes nothing: ${state}`, async () => {
    const before = ["a true <none>", "b true <none>", "c true <none>"];
    const { code, stderr, left } = await runBeside(before, { KEEP: "1", WAIT: "0" }, state);
    assert.equal(code, 1);
    assert.match(stderr, /did not get ready in time.*\nthe router refused it$/s);
    assert.equal(left.length, 4);
  });
}

for (const KEEP of ["", "0", "-1", "all", "07", "1 2"]) {
  Deno.test(`a run with KEEP="${KEEP}" fails before it sends any request`, async () => {
    const { code, stderr, asked } = await runBeside([], { KEEP });
    assert.deepEqual([code, asked], [1, []]);
    assert.match(stderr, /no whole number above 0/);
  });
}
