import { getVolumeHealth, listVolumeHealth } from "../../controller/volumes/health.ts";
import type { ControllerWorld } from "../../controller/deps.ts";
import { cutPage } from "../../volume/model/paging.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { method, type MethodsOf } from "../server/call.ts";
import type { ControllerHandlers } from "../generated/csi/v1/Controller.ts";
import type { ControllerGetVolumeHealthRequest__Output } from "../generated/csi/v1/ControllerGetVolumeHealthRequest.ts";
import type { ControllerGetVolumeHealthResponse } from "../generated/csi/v1/ControllerGetVolumeHealthResponse.ts";
import type { ControllerListVolumeHealthRequest__Output } from "../generated/csi/v1/ControllerListVolumeHealthRequest.ts";
import type { ControllerListVolumeHealthResponse } from "../generated/csi/v1/ControllerListVolumeHealthResponse.ts";
import { requiredVolumeId } from "./requests.ts";
import { describeHealth } from "./volume_health.ts";

/** The part of the Controller service that is about health. */
export function healthMethods(
  world: ControllerWorld,
): Pick<MethodsOf<ControllerHandlers>, "ControllerGetVolumeHealth" | "ControllerListVolumeHealth"> {
  return {
    ControllerGetVolumeHealth: method({
      changing: false,
      handler: (request: ControllerGetVolumeHealthRequest__Output, context) =>
        handleGet(world, request, context),
    }),
    ControllerListVolumeHealth: method({
      changing: false,
      handler: (request: ControllerListVolumeHealthRequest__Output, context) =>
        handleList(world, request, context),
    }),
  };
}

async function handleGet(
  world: ControllerWorld,
  request: ControllerGetVolumeHealthRequest__Output,
  context: CallContext,
): Promise<ControllerGetVolumeHealthResponse> {
  const id = requiredVolumeId(request.volumeId);
  return { volumeHealth: describeHealth(await getVolumeHealth(world, id, context)) };
}

async function handleList(
  world: ControllerWorld,
  request: ControllerListVolumeHealthRequest__Output,
  context: CallContext,
): Promise<ControllerListVolumeHealthResponse> {
  const page = { token: request.startingToken, maxEntries: request.maxEntries };
  cutPage([], page, () => 0); // A token or a number that is wrong needs no router to say so.
  const volumes = await listVolumeHealth(world, context);
  const { items, nextToken } = cutPage(volumes, page, (one) => 64 + one.problems.length * 256);
  return { entries: items.map(describeHealth), nextToken };
}
