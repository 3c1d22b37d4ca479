import assert from "node:assert/strict";
import {
  findHelm,
  renderChart,
  type Rendered,
  renderings,
  renderingText,
  snapshotApi,
} from "../../tools/deploy/helm.ts";
import { assertSound } from "./judge.ts";
import { type KubernetesObject, parseObjects } from "./objects.ts";

const helm = findHelm();
if (helm === undefined) {
  const note = "ignored: the tests of the chart need Helm, which is not here; make helm\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

/** Registers a test that renders the chart; ignored without Helm. */
export function chartTest(name: string, fn: () => void | Promise<void>): void {
  Deno.test({ name, ignore: helm === undefined, fn });
}

/** Values and options with which the chart is rendered, in addition to its defaults. */
export interface ChartValues {
  /** The content of a values file. @default {{ router: { address: "10.0.0.1" } }} */
  readonly values?: object;
  /** Values of Helm's --set. */
  readonly sets?: readonly string[];
  /** API groups and versions of the cluster, in addition to those of Kubernetes itself and of snapshots. */
  readonly apiVersions?: readonly string[];
  /** Whether the cluster knows snapshots. @default {true} */
  readonly knowsSnapshots?: boolean;
  /** The only template to render, as with Helm's --show-only. */
  readonly only?: string;
  /** The cluster's version of Kubernetes; by default a recent one. */
  readonly kubeVersion?: string;
}

/** Renders the chart, or returns Helm's complaint about the values. */
export function render(
  { values, sets, apiVersions = [], knowsSnapshots = true, only, kubeVersion }: ChartValues,
): Rendered {
  const file = Deno.makeTempFileSync({ prefix: "rds-csi-test-", suffix: ".json" });
  try {
    Deno.writeTextFileSync(file, JSON.stringify(values ?? { router: { address: "10.0.0.1" } }));
    return renderChart(
      helm!,
      [file],
      sets,
      [...knowsSnapshots ? [snapshotApi] : [], ...apiVersions],
      only,
      kubeVersion,
    );
  } finally {
    Deno.removeSync(file);
  }
}

/** Returns the chart's objects, after checking that they are sound. */
export function rendered(values: ChartValues = {}): KubernetesObject[] {
  const { success, yaml, complaint } = render(values);
  assert.ok(success, complaint);
  const objects = parseObjects(yaml);
  assertSound(objects);
  return objects;
}

/** Returns the text of one of the renderings that are compared as a whole. */
export function textOf(name: keyof typeof renderings): string {
  return renderingText(helm!, renderings[name]);
}

/** Values that the chart refuses, beside a router's address, and the words for it. */
export type Refusal = readonly [values: object, words: RegExp];

/** The values with the address of a router, unless they have a router themselves. */
export const withAddress = (values: object) => ({ router: { address: "10.0.0.1" }, ...values });

/** Registers a test for each row. */
export function valuesTests(refused: readonly Refusal[], accepted: readonly object[]): void {
  for (const [values, words] of refused) {
    chartTest(`the chart refuses ${JSON.stringify(values).slice(0, 90)} in words that help`, () => {
      const { success, complaint } = render({ values: withAddress(values) });
      assert.equal(success, false);
      assert.match(complaint, words);
    });
  }
  for (const values of accepted) {
    chartTest(`the chart takes ${JSON.stringify(values).slice(0, 90)}`, () => {
      const { success, complaint } = render({ values: withAddress(values) });
      assert.equal(success, true, complaint);
    });
  }
}
