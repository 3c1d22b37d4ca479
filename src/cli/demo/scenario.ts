import type { LifeKind } from "../acceptance/names.ts";
import { checksumOf, writePattern } from "../acceptance/pattern.ts";
import { grownBytes, smallBytes, TestVolume, type VolumeUser } from "../acceptance/test_volume.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { alignColumns } from "../table.ts";

/** One volume that the demo takes through its life. */
export interface Subject {
  readonly name: string;
  readonly kind: LifeKind;
  /** Whether it is expanded between two uses. */
  readonly expands: boolean;
  /** How much is written and compared, in whole MiB. */
  readonly dataBytes: number;
}

/** What a scenario uses. */
export interface Stage {
  readonly user: VolumeUser;
  readonly clock: Clock;
  /** Router commands so far. */
  countCommands(): number;
  /** Called with each step as it begins. */
  readonly begin: (step: string) => void;
  /** Called with each step as it ends. */
  readonly report: (row: StepRow) => void;
  readonly signal: AbortSignal;
}

/** One run of a {@linkcode Subject} on a {@linkcode Stage}. */
export class Scenario {
  readonly #stage: Stage;
  readonly #subject: Subject;
  readonly #volume: TestVolume;
  /** SHA-256 of the written data. */
  #written = "";

  constructor(stage: Stage, subject: Subject) {
    this.#stage = stage;
    this.#subject = subject;
    this.#volume = new TestVolume(stage.user, subject.name, subject.kind);
  }

  /** Runs only the controller's part, for machines where the node half cannot run. */
  async runController(): Promise<void> {
    await this.#create();
    await this.#publish();
    await this.#unpublish();
    await this.#expand();
    await this.#delete();
  }

  /** Runs the whole life. */
  async run(): Promise<void> {
    const { expands, dataBytes } = this.#subject;
    await this.#create();
    await this.#attach();
    await this.#step(`write ${dataBytes >> 20} MiB`, () => this.#write());
    await this.#stats(smallBytes);
    await this.#detach();
    // A router shows a new size with the next export, unless it is known to show it at once.
    if (expands) await this.#expand();
    await this.#attach();
    if (expands) await this.#expandOnNode();
    await this.#step("read and compare", () => this.#compare());
    await this.#detach();
    await this.#delete();
  }

  /** Undoes all steps, in order, even after a failure; returns what failed. */
  cleanUp(): Promise<string[]> {
    return this.#volume.remove();
  }

  async #attach(): Promise<void> {
    await this.#publish();
    await this.#step("NodeStageVolume", async () => {
      await this.#volume.stage();
      return `mayFormat=${this.#volume.published.mayFormat}`;
    });
    await this.#step("NodePublishVolume", () => this.#volume.bind());
  }

  async #detach(): Promise<void> {
    await this.#step("NodeUnpublishVolume", () => this.#volume.unbind());
    await this.#step("NodeUnstageVolume", () => this.#volume.unstage());
    await this.#unpublish();
  }

  async #create(): Promise<void> {
    await this.#step("CreateVolume", async () => {
      await this.#volume.create();
      return this.#volume.id;
    });
  }

  async #publish(): Promise<void> {
    await this.#step("ControllerPublishVolume", async () => {
      await this.#volume.publish();
      return this.#volume.published.nqn.replace(/^.*?:/, "…:");
    });
    await this.#step("… for a second node", async () => {
      await this.#volume.assertRefusedToOther();
      return "refused, as it must be";
    });
  }

  async #unpublish(): Promise<void> {
    await this.#step("ControllerUnpublishVolume", () => this.#volume.unpublish());
  }

  async #expand(): Promise<void> {
    await this.#step("ControllerExpandVolume", async () => `${await this.#volume.expand() >> 20n} MiB`);
  }

  async #expandOnNode(): Promise<void> {
    await this.#step("NodeExpandVolume", async () => {
      await this.#volume.expandOnNode();
      return "grown";
    });
    await this.#stats(grownBytes);
  }

  async #stats(sizeBytes: bigint): Promise<void> {
    await this.#step(
      "NodeGetVolumeStats",
      async () => `${await this.#volume.assertUsable(sizeBytes) >> 20n} MiB`,
    );
  }

  async #delete(): Promise<void> {
    await this.#step("DeleteVolume", () => this.#volume.delete());
  }

  async #write(): Promise<string> {
    this.#written = await writePattern(this.#volume.dataPath, this.#subject.dataBytes);
    return `sha256 ${this.#written.slice(0, 12)}…`;
  }

  async #compare(): Promise<string> {
    const read = await checksumOf(this.#volume.dataPath, this.#subject.dataBytes);
    if (read !== this.#written) throw new Error(`The data differs: wrote ${this.#written}, read ${read}`);
    return `sha256 ${read.slice(0, 12)}… equal`;
  }

  /** Runs a step and reports its cost; `act` returns a remark for the table. */
  async #step(step: string, act: () => Promise<string | void>): Promise<void> {
    this.#stage.signal.throwIfAborted();
    const commandsBefore = this.#stage.countCommands();
    const name = `${this.#subject.kind}: ${step}`;
    this.#stage.begin(name);
    const startedMs = this.#stage.clock.monotonicMs();
    const note = await act() ?? "";
    const milliseconds = this.#stage.clock.monotonicMs() - startedMs;
    const commands = this.#stage.countCommands() - commandsBefore;
    this.#stage.report({ step: name, milliseconds, commands, note });
  }
}

/** One line of the demo's table. */
export interface StepRow {
  readonly step: string;
  readonly milliseconds: number;
  /** Router commands (exec requests) of the step. */
  readonly commands: number;
  readonly note: string;
}

/** The rows as an aligned table with a heading. */
export function formatTable(rows: readonly StepRow[]): string[] {
  const cells = rows.map((row) => [row.step, row.milliseconds.toFixed(0), String(row.commands), row.note]);
  return alignColumns([["step", "ms", "router commands", ""], ...cells], [1, 2]);
}
