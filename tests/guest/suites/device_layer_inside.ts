import { absenceTests } from "./device_layer_absences_inside.ts";
import { fenceTests } from "./device_layer_fences_inside.ts";
import { refusalTests } from "./device_layer_refusals_inside.ts";
import { layerRebootTests } from "./device_layer_reboots_inside.ts";

const groups = {
  reboots: layerRebootTests,
  refusals: refusalTests,
  absences: absenceTests,
  fences: fenceTests,
};
const [only = "", ...names] = Deno.args;

for (const name of names) await groups[name as keyof typeof groups].run(new RegExp(only));
