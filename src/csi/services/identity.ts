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
  /** Whether it matters from where a volume is reached. @default {false} */
  readonly hasTopology?: boolean;
  /** Whether a volume can grow while nodes have it: only where every router is known to do that. @default {false} */
  readonly growsOnline?: boolean;
  /**
   * Asks whether what the driver needs can be reached and is fit for it; left out where nothing is needed.
   *
   * @throws {VolumeError} precondition or unsupported when a person has to change something
   * @throws {VolumeError} unavailable when it may come
   */
  readonly ready?: (context: CallContext) => Promise<void>;
}

/** What a person has to mend is told; waiting would not help. */
const UNFIT: readonly VolumeErrorKind[] = ["precondition", "unsupported"];

/** What may pass by itself. */
const NOT_YET: readonly VolumeErrorKind[] = ["unavailable", "busy", "deadline", "cancelled"];

/**
 * The Identity service.
 *
 * Probe says "not ready" only until `ready` has succeeded once, and asks no more after that: a failing Probe makes the
 * liveness probe restart the container, and restarting neither mends a router nor helps the volumes that are in use.
 */
export function identityMethods(options: IdentityOptions): MethodsOf<IdentityRpcs> {
  const readiness = new Readiness(options.ready);
  return {
    GetPluginInfo: method({
      changing: false,
      handler: () => Promise.resolve({ name: options.driverName, vendorVersion: options.vendorVersion }),
    }),
    GetPluginCapabilities: method({
      changing: false,
      handler: () => Promise.resolve({ capabilities: capabilities(options) }),
    }),
    Probe: method({
      changing: false,
      handler: async (_request, context) => ({ ready: { value: await readiness.check(context) } }),
    }),
  };
}

class Readiness {
  readonly #ready: IdentityOptions["ready"];
  #wasReady: boolean;

  constructor(ready: IdentityOptions["ready"]) {
    this.#ready = ready;
    this.#wasReady = ready === undefined;
  }

  async check(context: CallContext): Promise<boolean> {
    if (this.#wasReady) return true;
    try {
      await this.#ready?.(context);
      this.#wasReady = true;
      return true;
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      if (UNFIT.includes(error.kind)) throw new VolumeError("precondition", error.message, { cause: error });
      if (NOT_YET.includes(error.kind)) return false;
      throw error;
    }
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
