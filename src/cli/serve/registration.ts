import type { RegistrationConfig } from "../config/config.ts";
import type { CallRecord } from "../../csi/server/access_log.ts";
import { loadRegistration } from "../../csi/server/proto.ts";
import { registrationSocket, serveRegistration } from "../../csi/server/registration.ts";
import { type RegistrationEvents, RegistrationKeeper } from "../../csi/server/registration_keeper.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";

/** The adapters of a registration. */
export interface RegistrationAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: RegistrationEvents;
  readonly observe: (record: CallRecord) => void;
  /** Why the driver must not be registered yet; undefined when it may be. */
  readonly obstacle: () => Promise<string | undefined>;
}

/** Makes the keeper that registers a driver with the kubelet once it is started. */
export function openRegistration(
  { kubeletPath, socketPath }: RegistrationConfig,
  driverName: string,
  adapters: RegistrationAdapters,
): RegistrationKeeper {
  const path = registrationSocket(kubeletPath, driverName);
  const registration = loadRegistration();
  const log = adapters.log.with({ socket: path });
  const driver = { driverName, socketPath };
  return new RegistrationKeeper({
    ...adapters,
    log,
    serve: (notified) => serveRegistration({ ...adapters, log, path, driver, registration, notified }),
  });
}
