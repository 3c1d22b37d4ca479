import assert from "node:assert/strict";

/**
 * Metrics without the label of an only router, for tests of other subjects: every series of it must have that label.
 */
export function withoutBackend(metrics: string): string {
  const own = /^rds_csi_(?:router|pool|volumes|attachments|migrations|inventory|orphans|last_audit|unfenced)/;
  for (const line of metrics.split("\n")) {
    if (own.test(line)) assert.match(line, /[{,]backend="default"[,}]/);
  }
  return metrics.replaceAll(/backend="default",?/g, "").replaceAll("{}", "");
}
