import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { ServedRegistration } from "./registration.ts";

/** The kubelet's last answer, or that it cannot know of the driver any more because the socket is gone. */
export type RegistrationState = "registered" | "refused" | "lost";

/** Options of {@linkcode RegistrationKeeper}. */
export interface RegistrationKeeperOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Receives each state, for metrics. It must neither throw nor wait. */
  readonly observeState: (state: RegistrationState) => void;
  /** Why the driver could not serve the kubelet's pods right now, for people; undefined when it could. */
  obstacle?(): Promise<string | undefined>;
  /** Puts the registration service into the kubelet's folder. */
  serve(notified: (failure: string | undefined) => void): Promise<ServedRegistration>;
}

/** How often the socket is checked, in milliseconds: a node may be without the driver for that long. */
export const checkEveryMs = 5_000;

/**
 * How long to wait before a failed registration is tried again, in milliseconds; doubled each time up to the maximum.
 */
export const retryMs = 10_000;
const maxRetryMs = 300_000;

/**
 * Keeps a driver registered with the kubelet.
 *
 * The kubelet reads new files in its folder, and existing ones when it starts; not every kubelet retries a socket that
 * it could not register. So a socket that was removed is made again, with its folder or without, and after a failure a
 * new one replaces it. Another process that serves there is left alone for as long as it answers.
 */
export class RegistrationKeeper {
  readonly #options: RegistrationKeeperOptions;
  readonly #stopping = new AbortController();
  #served: ServedRegistration | undefined;
  #running: Promise<void> = Promise.resolve();
  #complained = false;
  #failures = 0;
  #failure: string | undefined;
  #retryAtMs: number | undefined;

  constructor(options: RegistrationKeeperOptions) {
    this.#options = options;
  }

  /** Starts keeping the driver registered, and returns at once. */
  start(): void {
    this.#running = this.#keep();
  }

  /** Removes the driver from the kubelet, and resolves when that is done. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#withdraw();
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#check();
        this.#complained = false;
      } catch (error) {
        this.#complain(error);
      }
      await this.#options.clock.sleep(checkEveryMs, signal).catch(() => {}); // Aborted: the loop's condition ends it.
    }
  }

  async #check(): Promise<void> {
    const { clock, log, observeState } = this.#options;
    if (this.#served !== undefined && !await this.#served.isInPlace()) {
      log.warn("the kubelet's folder was cleared; making the registration socket again");
      observeState("lost");
      await this.#withdraw();
    }
    if (this.#retryAtMs !== undefined && clock.monotonicMs() >= this.#retryAtMs) await this.#withdraw();
    if (this.#served !== undefined || this.#stopping.signal.aborted) return;
    // Pods would be scheduled to a node on which they can only hang.
    const obstacle = await this.#options.obstacle?.();
    if (obstacle !== undefined) throw new VolumeError("precondition", obstacle);
    this.#served = await this.#options.serve((failure) => this.#notified(failure));
    log.info("registering the driver with the kubelet");
  }

  #notified(failure: string | undefined): void {
    const { clock, log, observeState } = this.#options;
    if (failure === undefined) {
      this.#failures = 0;
      this.#failure = undefined;
      this.#retryAtMs = undefined;
      log.info("the kubelet has registered the driver");
      observeState("registered");
      return;
    }
    // Some kubelets retry the same socket every second, others never do.
    this.#retryAtMs ??= clock.monotonicMs() + Math.min(retryMs * 2 ** this.#failures++, maxRetryMs);
    const level = failure === this.#failure ? "debug" : "error";
    this.#failure = failure;
    log[level]("the kubelet could not register the driver", { reason: failure });
    observeState("refused");
  }

  async #withdraw(): Promise<void> {
    const served = this.#served;
    this.#served = undefined;
    this.#retryAtMs = undefined;
    await served?.close();
  }

  /** Logged once until it succeeds again, because it is tried every few seconds. */
  #complain(error: unknown): void {
    if (this.#complained) return;
    this.#complained = true;
    const reason = messageOf(error);
    this.#options.log.warn("cannot register the driver with the kubelet now", { reason });
  }
}
