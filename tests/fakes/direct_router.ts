import type { Command } from "../../src/routeros/console/command.ts";
import {
  ConnectError,
  type ExecEnd,
  type SshConnection,
  type SshTransport,
} from "../../src/routeros/ssh/transport.ts";
import { Console } from "../../src/simulator/console/console.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { makeRouter, type RouterFixture } from "../support/simulated_router.ts";
import { type ExecService, serveExec } from "../../src/simulator/ssh/exec.ts";
import { Timing } from "../../src/simulator/timing.ts";
import { Journal, Violations } from "../../src/simulator/assertions/journal.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { SeededRandom } from "./random.ts";

/** A simulated router without SSH, for tests of thousands of commands. */
export class DirectRouter implements SshTransport {
  readonly target = "test@router:22";
  readonly model: Router;
  readonly violations: Violations;
  readonly #service: ExecService;
  #sessions = 0;

  constructor(clock: Clock, basePath: string, options: Pick<RouterFixture, "profile" | "behaviours">) {
    this.model = makeRouter({ clock, ...options });
    this.violations = new Violations(clock);
    this.#service = {
      clock,
      router: this.model,
      console: new Console(this.model, new Timing(0, new SeededRandom())),
      journal: new Journal(clock),
      violations: this.violations,
      area: { basePaths: [basePath], clusterHashes: undefined },
    };
  }

  connect(): Promise<SshConnection> {
    if (this.#sessions >= this.model.behaviours.maxSessions) {
      return Promise.reject(new ConnectError("it has too many sessions", { lasting: false }));
    }
    this.#sessions++;
    const { promise: closed, resolve: end } = Promise.withResolvers<string>();
    let isOpen = true;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      this.#sessions--;
      end("it was closed");
    };
    // A sent command runs on when its connection breaks.
    const exec = (command: Command): Promise<ExecEnd> => {
      if (!isOpen) return Promise.resolve({ state: "not-run", reason: "No response from server" });
      return Promise.race([this.#run(command), closed.then((): ExecEnd => ({ state: "torn", output: "" }))]);
    };
    return Promise.resolve({ closed, close, exec });
  }

  #run({ text }: Command): Promise<ExecEnd> {
    if (text.length > this.model.behaviours.maxCommand) return Promise.resolve({ state: "torn", output: "" });
    const { promise, resolve } = Promise.withResolvers<ExecEnd>();
    const printed = { stdout: "", stderr: "" };
    const request = { session: 1, policies: {}, command: text, fault: undefined };
    const channel = {
      write: (stream: "stdout" | "stderr", bytes: Uint8Array) =>
        void (printed[stream] += new TextDecoder().decode(bytes)),
      finish(exitStatus: number | undefined) {
        const { stdout, stderr } = printed;
        const output = stderr === "" ? stdout : `${stdout}\n${stderr}`;
        resolve({ state: "ended", output, exitStatus, errors: stderr });
      },
      drop: () => resolve({ state: "torn", output: "" }),
    };
    void serveExec({ ...request, channel }, this.#service);
    return promise;
  }
}
