import { kindOf } from "../../router_profile/report/command_times.ts";
import type { Recording } from "../../router_profile/report/recorded.ts";
import type { Recorded } from "../../router_profile/report/report.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { SshTransport } from "./transport.ts";

/** Records what is sent to a router and what it answers, as far as it may be recorded. */
export class Transcript {
  readonly entries: Recorded[] = [];
  /** Milliseconds of every command by its kind. */
  readonly times = new Map<string, number[]>();
  /** The step that sends the commands. */
  step = "";
  readonly #clock: Clock;
  readonly #recording: Recording;
  #sent = 0;

  constructor(clock: Clock, recording: Recording) {
    this.#clock = clock;
    this.#recording = recording;
  }

  /** How many commands were sent. */
  get sent(): number {
    return this.#sent;
  }

  /** Notes that the router was rebooted. */
  rebooted(): void {
    this.entries.push({ step: this.step, event: "reboot" });
  }

  /** The same transport, with every command recorded in the order of the answers. */
  through(transport: SshTransport): SshTransport {
    return {
      target: transport.target,
      connect: async (signal) => {
        const { closed, close, exec } = bound(await transport.connect(signal));
        return {
          closed,
          close,
          exec: async (command, signal) => {
            this.#sent++;
            const startedMs = this.#clock.monotonicMs();
            const end = await exec(command, signal);
            if (end.state !== "not-run") {
              this.#record(command.text, end, this.#clock.monotonicMs() - startedMs);
            }
            return end;
          },
        };
      },
    };
  }

  #record(
    text: string,
    { state, output }: { readonly state: "ended" | "torn"; readonly output: string },
    ms: number,
  ): void {
    const kind = kindOf(text);
    this.times.set(kind, [...this.times.get(kind) ?? [], ms]);
    const command = this.#recording.command(text);
    if (command === undefined) return;
    const answer = this.#recording.answer(text, output);
    this.entries.push({ step: this.step, command, end: state, ms: Math.round(ms), ...answer });
  }
}

function bound(connection: Awaited<ReturnType<SshTransport["connect"]>>): typeof connection {
  return {
    closed: connection.closed,
    close: () => connection.close(),
    exec: (command, signal) => connection.exec(command, signal),
  };
}
