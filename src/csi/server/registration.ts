import { endsWithin } from "../../async/waiting.ts";
import type { Server } from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/log.ts";
import type { CallRecord } from "./access_log.ts";
import { method, type MethodsOf } from "./call.ts";
import { CallRunner } from "./call_runner.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { RegistrationRpcs } from "../generated/pluginregistration.ts";
import { implementation } from "./grpc_service.ts";
import type { RegistrationPackage } from "./proto.ts";
import { listen, makeServer, type Transport, type TransportAdapters } from "./transport.ts";

/** What the kubelet learns about a driver. */
export interface RegisteredDriver {
  readonly driverName: string;
  /** The driver's CSI socket, as the kubelet sees it. */
  readonly socketPath: string;
}

/** Options of {@linkcode serveRegistration}. */
export interface RegistrationOptions extends TransportAdapters {
  /** The socket in the kubelet's folder for plugins, see {@linkcode registrationSocket}. */
  readonly path: string;
  readonly driver: RegisteredDriver;
  /** From `loadRegistration()`. */
  readonly registration: RegistrationPackage;
  readonly log: Logger;
  /** Receives every answered call, for metrics. It must not throw. */
  readonly observe?: (record: CallRecord) => void;
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
 * @throws {VolumeError} invalid when the path is too long for a socket
 * @throws {VolumeError} precondition when another process serves there
 * @throws {VolumeError} unavailable when it cannot be bound
 */
export async function serveRegistration(options: RegistrationOptions): Promise<ServedRegistration> {
  const endpoint = parseEndpoint(options.path);
  const definition = options.registration.Registration.service;
  const runner = new CallRunner(options);
  const server = makeServer();
  server.addService(definition, implementation(definition, methodsOf(options), runner));
  const transport = await listen(endpoint, server, options).catch((error) => {
    server.forceShutdown();
    throw error;
  });
  return {
    isInPlace: () => transport.isInPlace(),
    close: () => close(runner, transport, server, options),
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

async function close(
  runner: CallRunner,
  transport: Transport,
  server: Server,
  { clock, log }: RegistrationOptions,
): Promise<void> {
  const drained = transport.drain(CLOSE_MS)
    .catch((error) => log.warn("cannot close the registration socket cleanly", { error }));
  await runner.stop(CLOSE_MS);
  await endsWithin(clock, CLOSE_MS, drained);
  transport.destroy();
  server.forceShutdown();
}
