import { VolumeError } from "../../volume/errors.ts";
import { describeUser, isCertain } from "../../volume/model/host/device_user.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Throws while a mkfs of an earlier process of this driver may still run: it has the device open, and claimed.
 *
 * @param seenFree whether no process was seen to have it open a moment ago: a mkfs that outlived its process had begun long
 *   before this call
 * @throws {VolumeError} busy
 */
export async function refuseWhileBusy(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
  seenFree = false,
): Promise<void> {
  const users = (await usersOf(deps, device, seenFree ? "claimed" : "unused", context)).filter(isCertain);
  context.signal.throwIfAborted();
  const [user] = users;
  if (user === undefined) return;
  deps.events.occurred({ kind: "format-refused", reason: "in-use" });
  throw new VolumeError(
    "busy",
    `Cannot format the device because it is in use, perhaps by an earlier attempt: device=${device.path} ` +
      describeUser(user).words,
  );
}
