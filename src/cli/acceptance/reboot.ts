import type { HostSide } from "../../doctor/probe/question.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import { checksumOf, writePattern } from "./pattern.ts";
import { rebootName } from "./names.ts";
import { assertHolds, NotHere, type StepGroup, stepOf } from "./step.ts";
import { TestVolume, type VolumeUser } from "./test_volume.ts";
import { readingHost } from "./writers.ts";

/** What a reboot needs. */
export interface RebootOptions {
  readonly user: VolumeUser;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly host: HostSide;
  readonly dataBytes: number;
  /** Why a node's half cannot be shown; undefined when it can. */
  readonly nodeMissing: string | undefined;
  /** Asks a person to reboot the router. */
  ask(): Promise<void>;
  /** The router's uptime in milliseconds; rejects while it is away. */
  uptimeMs(): Promise<number>;
  /** Called once the router has booted. */
  rebooted(): void;
  /** Called with what the boot did to the identity of an export. */
  identity(answer: RouterBehaviours["bootIdentity"]): void;
  /** Called with what could not be cleaned up. */
  problem(text: string): void;
}

/** How long the reboot and the disks after it are waited for, and how often is looked, in milliseconds. */
const rebootMs = 15 * 60_000;
const pollMs = 2_000;
/** How long after its boot the driver waits for a router to list its disks, in milliseconds. */
const settleMs = 121_000;

/** The steps around a reboot that a person makes. */
export function rebootGroup(options: RebootOptions): StepGroup {
  const reboot = new Reboot(options);
  const step = stepOf("reboot");
  return {
    steps: [
      step("a volume in use", "An answer is OK only when it is done", () => reboot.begin()),
      step("settle time", "Gone is only what is proven to be gone", () => reboot.wait()),
      step(
        "identity",
        "A device is formatted only if it is proven to be the volume",
        () => reboot.compareIdentity(),
      ),
      step("digests", "OK is true: what was written and synced is what is read", () => reboot.compareData()),
    ],
    end: () => reboot.end(),
  };
}

class Reboot {
  readonly #options: RebootOptions;
  readonly #volume: TestVolume;
  #digest = "";
  #identity = "";

  constructor(options: RebootOptions) {
    this.#options = options;
    this.#volume = new TestVolume(options.user, rebootName, "block");
  }

  async begin(): Promise<void> {
    const { nodeMissing, dataBytes } = this.#options;
    await this.#volume.create();
    await this.#volume.publish();
    this.#identity = await this.#readIdentity();
    if (nodeMissing !== undefined) return;
    await this.#volume.mount();
    this.#digest = await writePattern(this.#volume.dataPath, dataBytes);
    // The kernel may drop a device that comes back with another identity.
    await this.#volume.unmount();
  }

  /** Measures how long after its boot the router serves the export again. */
  async wait(): Promise<string> {
    const { clock, signal } = this.#options;
    const beforeMs = await this.#options.uptimeMs();
    await this.#options.ask();
    const untilMs = clock.monotonicMs() + rebootMs;
    const upMs = await this.#until(untilMs, "the router was not rebooted in time", async () => {
      const upMs = await this.#options.uptimeMs();
      return upMs < beforeMs ? upMs : undefined;
    });
    this.#options.rebooted();
    const bootedMs = clock.monotonicMs() - upMs;
    await this.#until(untilMs, "the router does not serve its exports again", () => this.#readIdentity());
    const servedMs = clock.monotonicMs() - bootedMs;
    await clock.sleep(Math.max(0, settleMs - servedMs), signal);
    return `the export is served ${Math.round(servedMs / 1000)} s after the boot`;
  }

  async compareIdentity(): Promise<string> {
    const isKept = await this.#readIdentity() === this.#identity;
    this.#options.identity(isKept ? "kept" : "new");
    return isKept ? "kept" : "new: what is mounted during a reboot has to be started again";
  }

  async compareData(): Promise<void> {
    const { nodeMissing, dataBytes } = this.#options;
    if (nodeMissing !== undefined) throw new NotHere(nodeMissing);
    await this.#volume.mount();
    const read = await checksumOf(this.#volume.dataPath, dataBytes);
    assertHolds(read === this.#digest, "the data differs from what was written before the reboot");
  }

  async end(): Promise<void> {
    for (const failure of await this.#volume.remove()) this.#options.problem(failure);
  }

  async #readIdentity(): Promise<string> {
    const context: CallContext = { requestId: "acceptance", signal: this.#options.signal };
    await using link = await this.#options.host.connect(this.#volume.published.nqn, readingHost, context);
    const { uuid, nguid } = await link.namespaceIdentity(context);
    return `${uuid} ${nguid} ${link.serial}`;
  }

  /** Looks again and again, also while the router is away. */
  async #until<Result>(
    untilMs: number,
    otherwise: string,
    look: () => Promise<Result | undefined>,
  ): Promise<Result> {
    const { clock, signal } = this.#options;
    let reason = "";
    for (; clock.monotonicMs() < untilMs; await clock.sleep(pollMs, signal)) {
      try {
        const result = await look();
        if (result !== undefined) return result;
      } catch (error) {
        signal.throwIfAborted();
        reason = messageOf(error);
      }
    }
    throw new VolumeError("deadline", `Cannot go on after the reboot because ${otherwise}: ${reason}`);
  }
}
