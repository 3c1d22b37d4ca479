import assert from "node:assert/strict";
import { findHelm, renderChart, type Rendered, renderings, renderingText } from "../../tools/deploy/helm.ts";
import { assertSound } from "./judge.ts";
import { type KubernetesObject, parseObjects } from "./objects.ts";

const helm = findHelm();
if (helm === undefined) {
  const note = "ignored: the tests of the chart need Helm, which is not here; make helm\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

/** A test that renders the chart; ignored without Helm. */
export function chartTest(name: string, fn: () => void | Promise<void>): void {
  Deno.test({ name, ignore: helm === undefined, fn });
}

/** What the chart is rendered with beside its own values. */
export interface ChartValues {
  /** As in a file of values. @default {{ router: { address: "10.0.0.1" } }} */
  readonly values?: object;
  /** As of Helm's --set. */
  readonly sets?: readonly string[];
  /** Groups and versions that the cluster knows beside those of Kubernetes itself. */
  readonly apiVersions?: readonly string[];
  /** The one template to render, as of Helm's --show-only. */
  readonly only?: string;
}

/** Renders the chart, or tells why Helm refuses the values. */
export function render({ values, sets, apiVersions, only }: ChartValues): Rendered {
  const file = Deno.makeTempFileSync({ prefix: "rds-csi-test-", suffix: ".json" });
  try {
    Deno.writeTextFileSync(file, JSON.stringify(values ?? { router: { address: "10.0.0.1" } }));
    return renderChart(helm!, [file], sets, apiVersions, only);
  } finally {
    Deno.removeSync(file);
  }
}

/** The chart's objects, which are sound. */
export function rendered(values: ChartValues = {}): KubernetesObject[] {
  const { success, yaml, complaint } = render(values);
  assert.ok(success, complaint);
  const objects = parseObjects(yaml);
  assertSound(objects);
  return objects;
}

/** The text of one of the renderings that are looked at as a whole. */
export function textOf(name: keyof typeof renderings): string {
  return renderingText(helm!, renderings[name]);
}
