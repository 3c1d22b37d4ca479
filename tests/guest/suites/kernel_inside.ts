import { namespaceRows, sizeRows } from "./kernel_device_inside.ts";
import { offerRows, withdrawalRows } from "./kernel_export_inside.ts";
import { digestRows } from "./kernel_digests_inside.ts";
import { hostRows } from "./kernel_host_inside.ts";
import { fenceRows } from "./kernel_fence_inside.ts";
import { frozenRows } from "./kernel_frozen_inside.ts";
import { pathRows } from "./kernel_paths_inside.ts";
import { connectionRows, lossRows, useRows } from "./kernel_use_inside.ts";

const rows = {
  connection: connectionRows,
  use: useRows,
  frozen: frozenRows,
  loss: lossRows,
  size: sizeRows,
  namespace: namespaceRows,
  withdrawal: withdrawalRows,
  offer: offerRows,
  path: pathRows,
  fence: fenceRows,
  digest: digestRows,
  host: hostRows,
};

for (const name of Deno.args) await rows[name as keyof typeof rows].run();
