import assert from "node:assert/strict";

/**
 * Metrics without the label of the only router there is, for tests that are about other things: every series of it has to
 * have that label.
 */
export function withoutBackend(metrics: string): string {
  const own = /^rds_csi_(?:router|pool|volumes|attachments|migrations|inventory|orphans|last_audit|unfenced)/;
  for (const line of metrics.split("\n")) {
    if (own.test(line)) assert.match(line, /[{,]backend="default"[,}]/);
  }
  return metrics.replaceAll(/backend="default",?/g, "").replaceAll("{}", "");
}
