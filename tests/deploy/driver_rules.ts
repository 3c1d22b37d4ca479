import type { Rule } from "./objects.ts";

/** What the driver's own code asks of the Kubernetes API: nothing, in this version. */
export const driverRules: Readonly<Record<"controller" | "node", readonly Rule[]>> = {
  controller: [],
  node: [],
};
