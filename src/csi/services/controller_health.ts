import { getVolumeHealth, listVolumeHealth } from "../../controller/volumes/health.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { cutPage } from "../../volume/model/paging.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import type { ControllerRpcs } from "../generated/csi.ts";
import type { MethodsOf } from "../server/call.ts";
import { requiredVolumeId } from "./requests.ts";
import { listPage, type PageAsked, type RouterPage } from "./routers/paging.ts";
import type { Router, Routers } from "./routers/routers.ts";

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
        listPage(routers, request, (router, page) => handleList(router, page, context)),
    },
  };
}

async function handleList(
  { deps, ids }: Router,
  { startingToken, maxEntries }: PageAsked,
  context: CallContext,
): Promise<RouterPage<ReturnType<typeof describeHealth>>> {
  const page = { token: startingToken, maxEntries };
  cutPage([], page, () => 0); // A wrong token or number is refused without a router.
  const volumes = await listVolumeHealth(deps, context);
  const { items, nextToken } = cutPage(volumes, page, (one) => 64 + one.problems.length * 256);
  return { entries: items.map((item) => describeHealth(ids, item)), nextToken };
}

function describeHealth(ids: VolumeIdPrefix, { id, problems }: VolumeHealth) {
  return { volumeId: ids.add(id), healthStatuses: [...problems] };
}
