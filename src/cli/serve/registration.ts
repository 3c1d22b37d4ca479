import type { RegistrationConfig } from "../config/config.ts";
import { loadRegistration } from "../../csi/server/proto.ts";
import {
  type RegistrationOptions,
  registrationSocket,
  serveRegistration,
} from "../../csi/server/registration.ts";
import { RegistrationKeeper, type RegistrationKeeperOptions } from "../../csi/server/registration_keeper.ts";

/** The adapters of a registration. */
export type RegistrationAdapters =
  & Omit<RegistrationKeeperOptions, "serve">
  & Pick<RegistrationOptions, "random" | "observe">;

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
