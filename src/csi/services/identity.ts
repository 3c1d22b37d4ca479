import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { method, type MethodsOf } from "../server/call.ts";
import type { IdentityRpcs, PluginCapability } from "../generated/csi.ts";
import type { Sent } from "../server/proto.ts";

/** Options of {@linkcode identityMethods}. */
export interface IdentityOptions {
  /** Name of the CSI driver (CSI v1.13.0, GetPluginInfo: domain name notation, at most 63 characters). */
  readonly driverName: string;
  readonly vendorVersion: string;
  /** Whether this process serves the Controller service. */
  readonly controllerServed: boolean;
  /** Whether volumes are reachable only from some nodes. @default {false} */
  readonly hasTopology?: boolean;
  /** Whether a volume can grow while nodes hold it: only if every router is known to support that. @default {false} */
  readonly growsOnline?: boolean;
  /**
   * Resolves when what the driver needs can be reached and is fit for it; left out if it needs nothing.
   *
   * @throws {VolumeError} precondition or unsupported when a person has to change something
   * @throws {VolumeError} unavailable when a retry may succeed
   */
  readonly ready?: (context: CallContext) => Promise<void>;
}

/** Kinds that a person has to fix, so Probe reports them: waiting would not help. */
const UNFIT: readonly VolumeErrorKind[] = ["precondition", "unsupported"];

/** Kinds that may pass by themselves. */
const NOT_YET: readonly VolumeErrorKind[] = ["unavailable", "busy", "deadline", "cancelled"];

/**
 * The Identity service.
 *
 * Probe says "not ready" only until `ready` has succeeded once, and does not ask again after that. A failing Probe
 * makes the liveness probe restart the container, and a restart neither repairs a router nor helps the volumes in use.
 */
export function identityMethods(options: IdentityOptions): MethodsOf<IdentityRpcs> {
  const { driverName: name, vendorVersion, ready } = options;
  let wasReady = ready === undefined;
  return {
    GetPluginInfo: method({
      changing: false,
      handler: () => Promise.resolve({ name, vendorVersion }),
    }),
    GetPluginCapabilities: method({
      changing: false,
      handler: () => Promise.resolve({ capabilities: capabilities(options) }),
    }),
    Probe: method({
      changing: false,
      handler: async (_request, context) => {
        if (!wasReady && await isReady(ready!, context)) wasReady = true;
        return { ready: { value: wasReady } };
      },
    }),
  };
}

async function isReady(
  ready: NonNullable<IdentityOptions["ready"]>,
  context: CallContext,
): Promise<boolean> {
  try {
    await ready(context);
    return true;
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    if (UNFIT.includes(error.kind)) throw new VolumeError("precondition", error.message, { cause: error });
    if (NOT_YET.includes(error.kind)) return false;
    throw error;
  }
}

function capabilities(options: IdentityOptions): Sent<PluginCapability>[] {
  const { controllerServed, hasTopology = false, growsOnline = false } = options;
  return [
    ...(controllerServed ? [{ service: { type: "CONTROLLER_SERVICE" as const } }] : []),
    ...(hasTopology ? [{ service: { type: "VOLUME_ACCESSIBILITY_CONSTRAINTS" as const } }] : []),
    { volumeExpansion: { type: growsOnline ? "ONLINE" : "OFFLINE" } },
  ];
}
