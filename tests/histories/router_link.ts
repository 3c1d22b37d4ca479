import { VolumeError } from "../../src/volume/errors.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { Mishap, StoreMethod } from "../fakes/mishap.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { CallStep } from "./schedule.ts";

/** A process that can die at any moment; all its running work stops then. */
export class Process {
  isDead = false;
  readonly #mourners: (() => void)[] = [];

  /** Calls `mourn` when the process dies. */
  onDeath(mourn: () => void): void {
    this.#mourners.push(mourn);
  }

  die(): void {
    this.isDead = true;
    for (const mourn of this.#mourners.splice(0)) mourn();
  }

  /** Resolves only while the process lives; in a dead process, it never resolves. */
  async alive(): Promise<void> {
    if (this.isDead) await new Promise(() => {});
  }
}

/** What happens instead of the command, by the trouble of the call. */
const mishaps: Partial<Record<string, Mishap>> = {
  refused: { refusal: "failure" },
  half: { runs: "half" },
  late: { late: true, unreadable: true },
};

/** The least duration of a copy, in milliseconds. */
const copyMs = 6_000;

/**
 * Removes the deadline from a call's context, because the router in memory does not know the clock of that deadline.
 */
function patient(argument: unknown): unknown {
  const isContext = typeof argument === "object" && argument !== null && "deadlineMs" in argument;
  return isContext ? { ...argument, deadlineMs: Infinity } : argument;
}

/**
 * Returns the router for one call of a controller's process: slow, and with the call's trouble at one of its commands.
 *
 * @param observe called after each command that may have changed something
 */
export function routerLink(
  store: FakeVolumeStore,
  { commandMs, trouble }: Pick<CallStep, "commandMs" | "trouble">,
  process: Process,
  clock: FakeClock,
  observe: () => void,
): VolumeStore {
  let count = 0;
  const send = async (name: StoreMethod, args: readonly unknown[]): Promise<unknown> => {
    await process.alive();
    const number = count++;
    const takesMs = commandMs[number % commandMs.length]!;
    // A copy whose source changes meanwhile is incomplete; the router in memory handles that itself.
    if (takesMs > 0 && name !== "copyFile") await clock.sleep(takesMs);
    await process.alive();
    const what = trouble?.at === number ? trouble.what : undefined;
    if (what === "dies-before") process.die();
    await process.alive();
    if (what === "lost") throw new VolumeError("unavailable", "Cannot reach the router");
    const mishap = what === undefined ? undefined : mishaps[what];
    if (name === "copyFile") store.mishap(name, { ...mishap, takesMs: Math.max(copyMs, takesMs) });
    else if (mishap !== undefined) store.mishap(name, mishap);
    try {
      const answer = await (store[name] as (...args: unknown[]) => Promise<unknown>)(...args.map(patient));
      if (what === "unanswered") {
        throw new VolumeError("unavailable", "Cannot read what became of the command");
      }
      return answer;
    } finally {
      observe();
      if (what === "dies-after") process.die();
      await process.alive();
    }
  };
  return new Proxy(store, {
    get: (_, name) => (...args: readonly unknown[]) => send(name as StoreMethod, args),
  });
}
