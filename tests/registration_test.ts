import { registerWithKubelets } from "./support/registration.ts";

Deno.test({
  name:
    "a node under its permissions registers with its kubelet, again when that was cleared, and leaves at its end",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () => registerWithKubelets("sources"),
});
