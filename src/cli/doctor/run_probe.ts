import { formatProfile } from "../../router_profile/profile.ts";
import type { HostSide } from "../../doctor/probe/question.ts";
import type { LineLimits } from "../../doctor/probe/session.ts";
import { probeRouter } from "../../doctor/probe/probe.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import type { DoctorOptions } from "./options.ts";
import { connectSubsystem } from "../../nvme/host_connection.ts";
import { refusalOf } from "../../nvme/refusal.ts";

/** What a probe needs of the machine. */
interface ProbeSeams {
  readonly clock: Clock;
  readonly random: Random;
  readonly transport: SshTransport;
  readonly host: HostSide;
  /** How long the router is waited for. */
  readonly limits?: LineLimits;
  /** How often two sessions race for the same disk. */
  readonly races?: number;
  writeText(path: string, text: string): Promise<void>;
}

/** Probes the router and hands out its profile. */
export async function runProbe(options: DoctorOptions, seams: ProbeSeams, io: CommandIo): Promise<number> {
  const { profile, unanswered } = await probeRouter({
    ...seams,
    basePath: options.basePaths[0]!,
    signal: io.signal,
    say: (text) => io.err(`probe: ${text}`),
  });
  const text = formatProfile(profile, unanswered);
  if (options.output === "") io.out(text.trimEnd());
  else {
    await seams.writeText(options.output, text);
    io.err(`probe: written to ${options.output}; use it with --router-profile ${options.output}`);
  }
  return exitCodes.ok;
}

/** This machine as a host of the exports at an address, without root and kernel. */
export function nvmeHostSide(address: string, port: number): HostSide {
  return {
    port,
    connect: (nqn, host, context) =>
      connectSubsystem({ address, port, nqn, hostNqn: host.nqn, hostId: host.id }, context),
    isRefusal: (error) => refusalOf(error) !== undefined,
  };
}
