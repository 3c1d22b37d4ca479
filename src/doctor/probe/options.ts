import type { Clock, Random } from "../../volume/ports/ports.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import type { HostSide } from "./host_side.ts";
import type { LineLimits } from "./session.ts";

/** What a probe needs. */
export interface ProbeOptions {
  readonly transport: SshTransport;
  readonly clock: Clock;
  readonly random: Random;
  /** The folder on the router in which it may make things, with one leading slash. */
  readonly basePath: string;
  readonly host: HostSide;
  /** Aborted when it is to stop: it then cleans up. */
  readonly signal: AbortSignal;
  /** How long the router is waited for. */
  readonly limits?: LineLimits;
  /** How often two sessions race for the same disk. @default {100} */
  readonly races?: number;
  /** Tells a person what goes on. */
  say(text: string): void;
}
