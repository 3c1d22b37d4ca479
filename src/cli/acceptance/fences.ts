import type { HostSide } from "../../doctor/probe/question.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import { fenceNames } from "./names.ts";
import { assertHolds, NotHere, type StepGroup, stepOf } from "./step.ts";
import { TestVolume, type VolumeUser } from "./test_volume.ts";
import {
  blockBytes,
  type BlockWriter,
  hostWriter,
  kernelWriter,
  readingHost,
  readNumbered,
} from "./writers.ts";

/** What the fences need. */
export interface FenceOptions {
  readonly user: VolumeUser;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** This process as a host of the router's exports. */
  readonly host: HostSide;
  /** Whether this machine's kernel reaches exports, so that it is the one that writes. */
  readonly byKernel: boolean;
  /** Ends the kernel's connection to an export: what hangs in it fails then. */
  disconnect(nqn: string): Promise<void>;
  /** Called with the slot of a volume that is exported. */
  capture(slot: string): Promise<void>;
  /** Called with what could not be cleaned up. */
  problem(text: string): void;
}

/** How long is written before the withdrawal, and gone on afterwards, in milliseconds. */
const writingMs = 1500;
/** How often a slow writer gets that time again for its first block. */
const slowRounds = 20;
const afterwardsMs = 3000;
/** The most blocks: a volume has room for many more. */
const mostBlocks = 20_000;

/** The steps that show that a node which lost a volume does not write to it any more. */
export function fenceGroup(options: FenceOptions): StepGroup {
  const fence = new Fence(options);
  const neverTwo = "Two nodes never write to one volume";
  const dead = "A node that comes back from the dead writes nothing";
  const step = stepOf("fence");
  return {
    steps: [
      step("two volumes in use", "An answer is OK only when it is done", () => fence.begin()),
      step("a second node", neverTwo, () => fence.refuseOther()),
      step("withdrawal during writes", dead, () => fence.withdraw()),
      step("the name of the old export", dead, () => fence.refuseOldName()),
      step(
        "sessions to other volumes",
        "A call for one volume touches no other",
        () => fence.checkBystander(),
      ),
      step("nothing written afterwards", dead, () => fence.readBack()),
    ],
    end: () => fence.end(),
  };
}

class Fence {
  readonly #options: FenceOptions;
  readonly #fenced: TestVolume;
  readonly #bystander: TestVolume;
  #writer: BlockWriter | undefined;
  #bystanderWriter: BlockWriter | undefined;
  #bystanderBlocks = 0;
  #oldNqn = "";
  /** When each block was begun, and the numbers of those that were acknowledged. */
  readonly #begunMs: number[] = [];
  readonly #acknowledged: number[] = [];
  #lastAcknowledgedMs = 0;
  #withdrawnMs = 0;
  #writing: Promise<void> | undefined;
  #stop = false;

  constructor(options: FenceOptions) {
    this.#options = options;
    this.#fenced = new TestVolume(options.user, fenceNames.fenced, "block");
    this.#bystander = new TestVolume(options.user, fenceNames.bystander, "block");
  }

  async begin(): Promise<void> {
    for (const volume of [this.#fenced, this.#bystander]) {
      await volume.create();
      await volume.publish();
    }
    this.#oldNqn = this.#fenced.published.nqn;
    this.#bystanderWriter = await this.#open(this.#bystander);
    this.#writer = await this.#open(this.#fenced);
    await this.#writeBystander();
    await this.#options.capture(this.#fenced.id);
  }

  refuseOther(): Promise<void> {
    return this.#fenced.assertRefusedToOther();
  }

  /** Measures how long after the withdrawal's answer a write was still acknowledged. */
  async withdraw(): Promise<string> {
    const { clock, signal } = this.#options;
    this.#writing = this.#write(this.#writer!);
    await clock.sleep(writingMs, signal);
    for (let round = 0; round < slowRounds && this.#acknowledged.length === 0; round++) {
      await clock.sleep(writingMs, signal);
    }
    assertHolds(this.#acknowledged.length > 0, "nothing could be written");
    const askedMs = clock.monotonicMs();
    await this.#fenced.unpublish();
    this.#withdrawnMs = clock.monotonicMs();
    await clock.sleep(afterwardsMs, signal);
    const lateMs = this.#lastAcknowledgedMs - this.#withdrawnMs;
    assertHolds(
      lateMs <= 0,
      `a write was acknowledged ${Math.round(lateMs)} ms after the withdrawal was answered`,
    );
    const took = Math.round(this.#withdrawnMs - askedMs);
    const last = Math.round(this.#withdrawnMs - this.#lastAcknowledgedMs);
    return `answered within ${took} ms, the last write acknowledged ${last} ms before`;
  }

  async refuseOldName(): Promise<void> {
    const { host } = this.#options;
    try {
      await using _link = await host.connect(this.#oldNqn, readingHost, this.#context());
    } catch (error) {
      if (host.isRefusal(error)) return;
      throw error;
    }
    assertHolds(false, "the old export is still served");
  }

  async checkBystander(): Promise<string> {
    await this.#writeBystander();
    return "it was written to before and after";
  }

  async readBack(): Promise<string> {
    await this.#end();
    await this.#fenced.publish();
    await using link = await this.#options.host.connect(
      this.#fenced.published.nqn,
      readingHost,
      this.#context(),
    );
    const blocks = await readNumbered(link, this.#begunMs.length, this.#context());
    const lost = this.#acknowledged.filter((number) => blocks[number] !== "there");
    assertHolds(lost.length === 0, `${lost.length} blocks that were acknowledged are not there`);
    const late = blocks.filter((block, number) =>
      this.#begunMs[number]! > this.#withdrawnMs && block !== "empty"
    );
    assertHolds(late.length === 0, `${late.length} blocks that were begun after the withdrawal are there`);
    return `${this.#acknowledged.length} blocks of ${blockBytes} bytes, none of them late`;
  }

  async end(): Promise<void> {
    const failures: string[] = [];
    const note = (error: unknown) => void failures.push(messageOf(error));
    await this.#end().catch(note);
    await this.#bystanderWriter?.close().catch(note);
    failures.push(...await this.#fenced.remove(), ...await this.#bystander.remove());
    for (const failure of failures) this.#options.problem(failure);
  }

  /** Where the kernel writes, its connection has to end before a write that hangs in it does. */
  async #end(): Promise<void> {
    this.#stop = true;
    const writer = this.#writer;
    this.#writer = undefined;
    if (writer === undefined) return;
    if (this.#options.byKernel) await this.#options.disconnect(this.#oldNqn);
    await this.#writing;
    await writer.close();
    if (this.#options.byKernel) await this.#fenced.unmount();
  }

  async #open(volume: TestVolume): Promise<BlockWriter> {
    if (this.#options.byKernel) {
      await volume.mount();
      return await kernelWriter(volume.dataPath);
    }
    try {
      return await hostWriter(this.#options.host, volume.published.nqn, this.#context());
    } catch (error) {
      if (VolumeError.is(error)) throw new NotHere("nothing on this machine reaches the exports", true);
      throw error;
    }
  }

  /** Numbered blocks, until one is not acknowledged or the step is over. */
  async #write(writer: BlockWriter): Promise<void> {
    const { clock } = this.#options;
    for (let number = 0; number < mostBlocks && !this.#stop; number++) {
      this.#begunMs.push(clock.monotonicMs());
      try {
        await writer.write(number);
      } catch {
        // As it must be. The kernel may give it back at any time, or this process's connection has ended.
        await clock.sleep(50);
        continue;
      }
      this.#acknowledged.push(number);
      this.#lastAcknowledgedMs = clock.monotonicMs();
    }
  }

  async #writeBystander(): Promise<void> {
    for (let count = 0; count < 8; count++) await this.#bystanderWriter!.write(this.#bystanderBlocks++);
  }

  #context(): CallContext {
    return { requestId: "acceptance", signal: this.#options.signal };
  }
}
