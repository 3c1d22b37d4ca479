import assert from "node:assert/strict";
import { join } from "node:path";
import { suites as clusterSuites } from "../cluster/suites.ts";
import { suites as guestSuites } from "../guest/suites.ts";
import { projectRoot } from "../support/parts.ts";

const ci = Deno.readTextFileSync(join(projectRoot, ".ci/run"));
const contributing = Deno.readTextFileSync(join(projectRoot, "CONTRIBUTING.md"));

/** The suites that a change has to pass, by the variable of `.ci/run` that names them. */
function suitesOf(variable: "guests" | "clusters" | "machines"): readonly string[] {
  return new RegExp(`\\b${variable}='([\\w ]+)'`).exec(ci)?.[1]?.split(" ") ?? [];
}

Deno.test("CONTRIBUTING.md says how long a change may take in CI", () => {
  const [, minutes] = /^BUDGET_TOTAL=(\d+)$/m.exec(ci)!;
  assert.match(contributing, new RegExp(`^make ci .*: ${minutes} minutes;`, "m"));
});

Deno.test("CI runs suites that exist for every change, of machines those that CONTRIBUTING.md names", () => {
  const [guests, clusters, machines] = [suitesOf("guests"), suitesOf("clusters"), suitesOf("machines")];
  for (const names of [guests, clusters, machines]) assert.ok(names.length > 0);
  const missing = [...guests, ...machines].filter((name) => !Object.hasOwn(guestSuites, name));
  assert.deepEqual(missing, []);
  assert.deepEqual(clusters.filter((name) => !Object.hasOwn(clusterSuites, name)), []);
  const named = contributing.matchAll(/`(node_machine\w*)`/g).map(([, name]) => name!).toArray();
  assert.deepEqual([...guests, ...machines].filter((name) => name.startsWith("node_machine")), named);
});

Deno.test("CI at night runs the stages that CONTRIBUTING.md names for it", () => {
  const nightly = ci.matchAll(/^\[ -z "\$nightly" \] \|\| stage ([\w/]+)$/gm).map(([, name]) => name!)
    .toArray();
  assert.ok(nightly.length > 3);
  // The other half of a stage that runs for every change.
  for (const name of nightly.filter((name) => name !== "sanity/sources")) {
    assert.ok(contributing.includes(`\`make ${name}\``), name);
  }
});
