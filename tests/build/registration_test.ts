import { registerWithKubelets } from "../support/registration.ts";
import { isBuilt } from "./binary.ts";

Deno.test({
  name: "the executable registers with its kubelet, again when that was cleared, and leaves at its end",
  ignore: !isBuilt,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: () => registerWithKubelets("binary"),
});
