import { VolumeError } from "../../../volume/errors.ts";
import type { CallContext } from "../../../volume/ports/ports.ts";
import type { Method, MethodsOf } from "../../server/call.ts";
import type { ControllerHandlers } from "../../generated/csi/v1/Controller.ts";
import type { VolumeContentSource__Output } from "../../generated/csi/v1/VolumeContentSource.ts";
import { lockKeys } from "../../server/volume_lock.ts";
import type { Backend, Backends } from "./backend.ts";
import { chooseBackend, reaches } from "./choice.ts";
import { listPage } from "./paging.ts";

type Methods = Required<MethodsOf<ControllerHandlers>>;
type RequestOf<Name extends keyof Methods> = Methods[Name] extends Method<infer Req, infer _> ? Req : never;
type ResponseOf<Name extends keyof Methods> = Methods[Name] extends Method<infer _, infer Res> ? Res : never;

/** The router that a request is for, and the request as that router takes it. */
interface Routed<Req> {
  readonly backend: Backend;
  readonly request: Req;
}

/**
 * The Controller service of several routers: each call goes to the router that it is about, with the ids that it knows, and
 * its answer comes back with those that clients know. Nothing is looked at here but the request.
 */
export function backendsMethods(backends: Backends): MethodsOf<ControllerHandlers> {
  return {
    ControllerGetCapabilities: backends.all[0]!.methods.ControllerGetCapabilities!,
    ...volumeMethods(backends),
    ...snapshotMethods(backends),
    ...listMethods(backends),
  };
}

function volumeMethods(backends: Backends) {
  const byVolume = <Req extends { readonly volumeId: string }>(request: Req): Routed<Req> => {
    const { backend, id } = backends.locate(request.volumeId);
    return { backend, request: { ...request, volumeId: id } };
  };
  const withContext = <
    Req extends { readonly volumeId: string; readonly volumeContext: Record<string, string> },
  >(
    request: Req,
  ): Routed<Req> => {
    const { backend, request: own } = byVolume(request);
    return {
      backend,
      request: { ...own, volumeContext: backends.contextFor(backend, request.volumeContext) },
    };
  };
  return {
    CreateVolume: changing(
      "CreateVolume",
      (request) => routeCreate(backends, request),
      (response, backend, request) => {
        const { topology } = backend;
        const volume = {
          ...response.volume,
          volumeId: backend.border.handleOf(response.volume?.volumeId ?? ""),
          contentSource: request.volumeContentSource,
          ...(Object.keys(topology).length === 0
            ? {}
            : { accessibleTopology: [{ segments: { ...topology } }] }),
        };
        return { ...response, volume };
      },
    ),
    DeleteVolume: changing("DeleteVolume", byVolume),
    ControllerPublishVolume: changing("ControllerPublishVolume", withContext),
    ControllerUnpublishVolume: changing("ControllerUnpublishVolume", byVolume),
    ControllerExpandVolume: changing("ControllerExpandVolume", byVolume),
    ValidateVolumeCapabilities: reading("ValidateVolumeCapabilities", withContext),
    ControllerGetVolume: reading("ControllerGetVolume", byVolume, (response, backend) => ({
      ...response,
      volume: { ...response.volume, volumeId: backend.border.handleOf(response.volume?.volumeId ?? "") },
    })),
    ControllerGetVolumeHealth: reading("ControllerGetVolumeHealth", byVolume, (response, backend) => ({
      volumeHealth: {
        ...response.volumeHealth,
        volumeId: backend.border.handleOf(response.volumeHealth?.volumeId ?? ""),
      },
    })),
    GetCapacity: capacityMethod(backends),
  };
}

function routeCreate(
  backends: Backends,
  request: RequestOf<"CreateVolume">,
): Routed<RequestOf<"CreateVolume">> {
  const { requisite = [], preferred = [] } = request.accessibilityRequirements ?? {};
  const source = request.volumeContentSource;
  const handle = source?.volume?.volumeId ?? source?.snapshot?.snapshotId ?? "";
  const backend = chooseBackend(backends, {
    parameters: request.parameters,
    source: handle === "" ? undefined : handle,
    places: [...preferred, ...requisite].map(({ segments }) => segments),
  });
  return { backend, request: { ...request, volumeContentSource: bareSource(backend, source) } };
}

function bareSource(
  { border }: Backend,
  source: VolumeContentSource__Output | null,
): VolumeContentSource__Output | null {
  if (source?.volume) {
    return { ...source, volume: { volumeId: border.idOf(source.volume.volumeId) ?? "" } };
  }
  if (source?.snapshot) {
    return { ...source, snapshot: { snapshotId: border.idOf(source.snapshot.snapshotId) ?? "" } };
  }
  return source;
}

/** Of where CreateVolume would go with the same parameters; nothing where it would go nowhere for the place. */
function capacityMethod(backends: Backends): Methods["GetCapacity"] {
  return {
    changing: false,
    handler: async (request, context) => {
      const place = request.accessibleTopology?.segments;
      const places = place === undefined || Object.keys(place).length === 0 ? [] : [place];
      const isReached = backends.all.some((backend) => reaches(backend, places));
      if (!isReached) return { availableCapacity: "0" };
      const named = request.parameters["backend"];
      if (named !== undefined && !reaches(backends.named(named), places)) return { availableCapacity: "0" };
      const backend = chooseBackend(backends, { parameters: request.parameters, source: undefined, places });
      return await ask(backend, "GetCapacity", request, context);
    },
  };
}

function snapshotMethods(backends: Backends) {
  const bySnapshot = <Req extends { readonly snapshotId: string }>(request: Req): Routed<Req> => {
    const { backend, id } = backends.locate(request.snapshotId);
    return { backend, request: { ...request, snapshotId: id } };
  };
  return {
    CreateSnapshot: changing("CreateSnapshot", (request) => {
      const { backend, id } = backends.locate(request.sourceVolumeId);
      return { backend, request: { ...request, sourceVolumeId: id } };
    }, (response, backend) => ({ snapshot: outside(backend, response.snapshot) })),
    DeleteSnapshot: changing("DeleteSnapshot", bySnapshot),
    GetSnapshot: reading("GetSnapshot", bySnapshot, (response, backend) => ({
      snapshot: outside(backend, response.snapshot),
    })),
  };
}

function outside<Snapshot extends { snapshotId?: string; sourceVolumeId?: string }>(
  { border }: Backend,
  snapshot: Snapshot | null | undefined,
): Snapshot | null {
  if (!snapshot) return null;
  const { snapshotId = "", sourceVolumeId = "" } = snapshot;
  return {
    ...snapshot,
    snapshotId: border.handleOf(snapshotId),
    sourceVolumeId: border.handleOf(sourceVolumeId),
  };
}

function listMethods(backends: Backends): Pick<
  Methods,
  "ListVolumes" | "ListSnapshots" | "ControllerListVolumeHealth"
> {
  return {
    ListVolumes: {
      changing: false,
      handler: async (request, context) => {
        const { entries, nextToken } = await listPage(backends, request, async (backend, page) => {
          const own = await ask(backend, "ListVolumes", { ...request, ...page }, context);
          const named = (own.entries ?? []).map((entry) => ({
            ...entry,
            volume: { ...entry.volume, volumeId: backend.border.handleOf(entry.volume?.volumeId ?? "") },
          }));
          return { entries: named, nextToken: own.nextToken ?? "" };
        });
        return { entries: [...entries], nextToken };
      },
    },
    ControllerListVolumeHealth: {
      changing: false,
      handler: async (request, context) => {
        const { entries, nextToken } = await listPage(backends, request, async (backend, page) => {
          const own = await ask(backend, "ControllerListVolumeHealth", { ...request, ...page }, context);
          const named = (own.entries ?? []).map((entry) => ({
            ...entry,
            volumeId: backend.border.handleOf(entry.volumeId ?? ""),
          }));
          return { entries: named, nextToken: own.nextToken ?? "" };
        });
        return { entries: [...entries], nextToken };
      },
    },
    ListSnapshots: {
      changing: false,
      handler: async (request, context) => {
        const found = narrowed(backends, request);
        if (found === undefined) return { entries: [], nextToken: "" };
        const { entries, nextToken } = await listPage(found, request, async (backend, page) => {
          const { border } = backend;
          const own = {
            ...request,
            ...page,
            snapshotId: request.snapshotId === "" ? "" : border.idOf(request.snapshotId) ?? "",
            sourceVolumeId: request.sourceVolumeId === "" ? "" : border.idOf(request.sourceVolumeId) ?? "",
          };
          const answer = await ask(backend, "ListSnapshots", own, context);
          const named = (answer.entries ?? []).map((entry) => ({
            snapshot: outside(backend, entry.snapshot),
          }));
          return { entries: named, nextToken: answer.nextToken ?? "" };
        });
        return { entries: [...entries], nextToken };
      },
    },
  };
}

/** The routers that a list of snapshots is about; undefined when its two filters are about different ones. */
function narrowed(backends: Backends, request: RequestOf<"ListSnapshots">): Backends | undefined {
  const handles = [request.snapshotId, request.sourceVolumeId].filter((handle) => handle !== "");
  const [first, second] = handles.map((handle) => backends.locate(handle).backend);
  if (first === undefined) return backends;
  return second === undefined || second === first ? backends.only(first) : undefined;
}

function changing<Name extends keyof Methods>(
  name: Name,
  route: (request: RequestOf<Name>) => Routed<RequestOf<Name>>,
  answer: Answer<Name> = (response) => response,
): Methods[Name] {
  const method = {
    changing: true,
    lockKey: (request: RequestOf<Name>) => {
      const { backend, request: own } = route(request);
      const inner = methodOf(backend, name);
      const keys = inner.changing ? lockKeys(inner.lockKey(own as never)) : [];
      return keys.map((key) => backend.border.handleOf(key));
    },
    handler: handlerOf(name, route, answer),
  };
  return method as unknown as Methods[Name];
}

function reading<Name extends keyof Methods>(
  name: Name,
  route: (request: RequestOf<Name>) => Routed<RequestOf<Name>>,
  answer: Answer<Name> = (response) => response,
): Methods[Name] {
  return { changing: false, handler: handlerOf(name, route, answer) } as unknown as Methods[Name];
}

/** Puts an answer of a router into the words that clients know; `request` is what they sent. */
type Answer<Name extends keyof Methods> = (
  response: ResponseOf<Name>,
  backend: Backend,
  request: RequestOf<Name>,
) => ResponseOf<Name>;

function handlerOf<Name extends keyof Methods>(
  name: Name,
  route: (request: RequestOf<Name>) => Routed<RequestOf<Name>>,
  answer: Answer<Name>,
) {
  return async (request: RequestOf<Name>, context: CallContext): Promise<ResponseOf<Name>> => {
    const { backend, request: own } = route(request);
    return answer(await ask(backend, name, own, context), backend, request);
  };
}

function methodOf(backend: Backend, name: keyof Methods): Method<never, unknown> {
  const method = backend.methods[name] as Method<never, unknown> | undefined;
  if (method === undefined) {
    throw new VolumeError("unsupported", `Cannot serve ${name} as there is no such method`);
  }
  return method;
}

/** Asks one router. What it refuses is told with its name, as ids in the text have no prefix. */
async function ask<Name extends keyof Methods>(
  backend: Backend,
  name: Name,
  request: RequestOf<Name>,
  context: CallContext,
): Promise<ResponseOf<Name>> {
  try {
    return await methodOf(backend, name).handler(request as never, context) as ResponseOf<Name>;
  } catch (error) {
    // A fault of this driver keeps its stack for the log.
    if (!VolumeError.is(error) || error.kind === "internal") throw error;
    throw new VolumeError(error.kind, `${error.message} (router ${backend.name})`, { cause: error.cause });
  }
}
