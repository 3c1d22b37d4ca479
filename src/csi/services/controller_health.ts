import { getVolumeHealth, listVolumeHealth } from "../../controller/volumes/health.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import type { ControllerRpcs } from "../generated/csi.ts";
import type { MethodsOf } from "../server/call.ts";
import { requiredVolumeId } from "./requests.ts";
import { listPage } from "./routers/paging.ts";
import type { Routers } from "./routers/routers.ts";

/** The health methods of the Controller service. */
export function healthMethods(
  routers: Routers,
): Pick<MethodsOf<ControllerRpcs>, "ControllerGetVolumeHealth" | "ControllerListVolumeHealth"> {
  return {
    ControllerGetVolumeHealth: {
      changing: false,
      handler: routers.byVolume(async ({ router: { deps, ids }, id }, _request, context) => ({
        volumeHealth: describeHealth(ids, await getVolumeHealth(deps, requiredVolumeId(id), context)),
      })),
    },
    ControllerListVolumeHealth: {
      changing: false,
      handler: (request, context) =>
        listPage(routers, request, {
          read: ({ deps }) => listVolumeHealth(deps, context),
          describe: describeHealth,
          sizeOf: ({ problems }) => 64 + problems.length * 256,
        }),
    },
  };
}

function describeHealth(ids: VolumeIdPrefix, { id, problems }: VolumeHealth) {
  return { volumeId: ids.add(id), healthStatuses: [...problems] };
}
