import { refusalTests } from "./device_layer_refusals_inside.ts";
import { layerRebootTests } from "./device_layer_reboots_inside.ts";

const groups = { reboots: layerRebootTests, refusals: refusalTests };

for (const name of Deno.args) await groups[name as keyof typeof groups].run();
