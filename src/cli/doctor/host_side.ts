import { connectSubsystem } from "../../nvme/host_connection.ts";
import { refusalOf } from "../../nvme/refusal.ts";
import type { HostSide } from "../../doctor/probe/question.ts";

/** This machine as a host of the exports at an address, without root and kernel. */
export function nvmeHostSide(address: string, port: number): HostSide {
  return {
    port,
    connect: (nqn, host, context) =>
      connectSubsystem({ address, port, nqn, hostNqn: host.nqn, hostId: host.id }, context),
    isRefusal: (error) => refusalOf(error) !== undefined,
  };
}
