/** Whether suites are to try everything that they know, also what takes longer than CI has: `CLUSTER_WHOLE=1`. */
export function isWhole(): boolean {
  return Boolean(Deno.env.get("CLUSTER_WHOLE"));
}
