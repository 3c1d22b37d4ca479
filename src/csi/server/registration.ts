import { method, type MethodsOf } from "./call.ts";
import type { RegistrationRpcs } from "../generated/pluginregistration.ts";
import { implementation } from "./grpc_service.ts";
import type { Definition } from "./proto.ts";
import { serveAt, type ServeOptions } from "./server.ts";

/** What the kubelet learns about a driver. */
export interface RegisteredDriver {
  readonly driverName: string;
  /** The driver's CSI socket, as the kubelet sees it. */
  readonly socketPath: string;
}

/** Options of {@linkcode serveRegistration}. */
export interface RegistrationOptions extends ServeOptions {
  /** The socket in the kubelet's folder for plugins, see {@linkcode registrationSocket}. */
  readonly path: string;
  readonly driver: RegisteredDriver;
  /** From `loadRegistration()`. */
  readonly registration: Definition<RegistrationRpcs>;
  /**
   * Called each time the kubelet reports the result of the registration: the reason of a failure, or undefined. It must
   * not throw.
   */
  notified(failure: string | undefined): void;
}

/** A registration service in the kubelet's folder. */
export interface ServedRegistration {
  /** Whether the kubelet finds this socket there: neither removed nor replaced. */
  isInPlace(): Promise<boolean>;
  /** Removes the socket if it is still its own; the kubelet then unregisters the driver. */
  close(): Promise<void>;
}

/** The kubelet's type of plugin for CSI drivers. */
const PLUGIN_TYPE = "CSIPlugin";

/** Versions of the kubelet's interface to CSI drivers. */
const SUPPORTED_VERSIONS = ["1.0.0"];

/** How long a call of the kubelet may take to end when the service is closed. */
const CLOSE_MS = 500;

/** The socket for registering a driver. */
export function registrationSocket(kubeletPath: string, driverName: string): string {
  return `${kubeletPath}/plugins_registry/${driverName}-reg.sock`;
}

/**
 * Serves the kubelet's plugin registration service (k8s.io/kubelet, pluginregistration/v1) on a unix socket. The socket
 * gets its name in one step; before that its name begins with a dot, which the kubelet ignores.
 *
 * @throws as {@linkcode serveAt}
 */
export async function serveRegistration(options: RegistrationOptions): Promise<ServedRegistration> {
  const { registration: definition } = options;
  const server = await serveAt(
    options.path,
    (server, runner) => server.addService(definition, implementation(definition, methodsOf(options), runner)),
    options,
  );
  return {
    isInPlace: () => server.isInPlace(),
    close: () => server.stop({ graceMs: CLOSE_MS }),
  };
}

function methodsOf({ driver, notified }: RegistrationOptions): MethodsOf<RegistrationRpcs> {
  const info = {
    type: PLUGIN_TYPE,
    name: driver.driverName,
    endpoint: driver.socketPath,
    supportedVersions: SUPPORTED_VERSIONS,
  };
  return {
    GetInfo: method({ changing: false, handler: () => Promise.resolve(info) }),
    NotifyRegistrationStatus: method({
      changing: false,
      handler: ({ pluginRegistered, error }) => {
        notified(pluginRegistered ? undefined : error || "the kubelet gave no reason");
        return Promise.resolve({});
      },
    }),
  };
}
