import { digest } from "../digest.ts";

/**
 * Eight hex digits that identify the machine behind a node id; undefined when it has no machine id. Case and white
 * space do not count, because kubelets and kernels differ in them.
 *
 * @param machineId of systemd, as in `/etc/machine-id` and in a Node's `status.nodeInfo.machineID`
 * @param systemUuid of the firmware, as in a Node's `status.nodeInfo.systemUUID`; "" where there is none
 */
export function machineHash(machineId: string, systemUuid: string): string | undefined {
  const [id, uuid] = [machineId, systemUuid].map((text) => text.trim().toLowerCase());
  return id === "" ? undefined : digest(`${id} ${uuid}`, 8);
}

/** Whether a text has the form of {@linkcode machineHash}. */
export function isMachineHash(text: string): boolean {
  return /^[0-9a-f]{8}$/.test(text);
}
