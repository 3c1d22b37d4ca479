import type { VolumeCapability } from "../../csi/generated/csi.ts";
import type { Sent } from "../../csi/server/proto.ts";
import type { PublishContext } from "../../volume/model/publish_context.ts";
import { parsePublishContext } from "../../volume/model/parse_context.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { alignColumns } from "../table.ts";
import { codeOf, type CsiClients } from "../../csi/server/client.ts";
import { checksumOf, writePattern } from "./pattern.ts";

/** One volume that the demo takes through its life. */
export interface Subject {
  readonly name: string;
  readonly kind: "block" | "ext4" | "xfs";
  /** Whether it is expanded between two uses. */
  readonly expands: boolean;
  /** How much is written and compared, in whole MiB. */
  readonly dataBytes: number;
}

/** What a scenario uses. */
export interface Stage {
  readonly clients: CsiClients;
  readonly clock: Clock;
  readonly nodeId: string;
  /** A second node, known to the controller, that must be refused. */
  readonly otherNodeId: string;
  /** Folder for this volume's staging and target paths. */
  readonly directory: string;
  /** Router commands so far. */
  countCommands(): number;
  /** Called with each step as it begins. */
  readonly begin: (step: string) => void;
  /** Called with each step as it ends. */
  readonly report: (row: StepRow) => void;
  readonly signal: AbortSignal;
}

const gibibyte = 1n << 30n;

/** One run of a {@linkcode Subject} on a {@linkcode Stage}. It remembers what has to be undone if it fails. */
export class Scenario {
  readonly #stage: Stage;
  readonly #controller: CsiClients["controller"];
  readonly #node: CsiClients["node"];
  readonly #subject: Subject;
  readonly #staging: string;
  readonly #target: string;
  /** SHA-256 of the written data. */
  #written = "";
  #volumeId = "";
  #volumeContext: Record<string, string> = {};
  #publishContext: Record<string, string> = {};

  constructor(stage: Stage, subject: Subject) {
    this.#stage = stage;
    this.#controller = stage.clients.controller;
    this.#node = stage.clients.node;
    this.#subject = subject;
    this.#staging = `${stage.directory}/staging`;
    this.#target = `${stage.directory}/target`;
  }

  /** Runs only the controller's part, for machines where the node half cannot run. */
  async runController(): Promise<void> {
    await this.#create();
    await this.#step("ControllerPublishVolume", () => this.#publishToNode());
    await this.#step("… for a second node", () => this.#refuseSecondNode());
    await this.#step("ControllerUnpublishVolume", () => this.#unpublishFromNode());
    await this.#step("ControllerExpandVolume", () => this.#expandController());
    await this.#step("DeleteVolume", () => this.#delete());
  }

  /** Runs the whole life. */
  async run(): Promise<void> {
    await this.#create();
    await this.#attach();
    await this.#step(`write ${this.#subject.dataBytes >> 20} MiB`, () => this.#write());
    await this.#step("NodeGetVolumeStats", () => this.#stats(gibibyte));
    await this.#detach();
    // A router shows a new size with the next export, unless it is known to show it at once.
    const { expands } = this.#subject;
    if (expands) await this.#step("ControllerExpandVolume", () => this.#expandController());
    await this.#attach();
    if (expands) await this.#expandOnNode();
    await this.#step("read and compare", () => this.#compare());
    await this.#detach();
    await this.#step("DeleteVolume", () => this.#delete());
  }

  /** Undoes all steps, in order, even after a failure; returns what failed. */
  async cleanUp(): Promise<string[]> {
    const failures: string[] = [];
    if (this.#volumeId === "") return failures;
    const steps = [
      () => this.#unpublishTarget(),
      () => this.#unstage(),
      () => this.#unpublishFromNode(),
      () => this.#delete(),
    ];
    for (const step of steps) {
      await step().catch((error: Error) => failures.push(error.message));
    }
    return failures;
  }

  async #attach(): Promise<void> {
    await this.#step("ControllerPublishVolume", () => this.#publishToNode());
    await this.#step("… for a second node", () => this.#refuseSecondNode());
    await this.#step("NodeStageVolume", () => this.#stageVolume());
    await this.#step("NodePublishVolume", () => this.#publishTarget());
  }

  async #expandOnNode(): Promise<void> {
    await this.#step("NodeExpandVolume", () => this.#expandNode());
    await this.#step("NodeGetVolumeStats", () => this.#stats(2n * gibibyte));
  }

  async #detach(): Promise<void> {
    await this.#step("NodeUnpublishVolume", () => this.#unpublishTarget());
    await this.#step("NodeUnstageVolume", () => this.#unstage());
    await this.#step("ControllerUnpublishVolume", () => this.#unpublishFromNode());
  }

  async #create(): Promise<void> {
    await this.#step("CreateVolume", async () => {
      const { volume } = await this.#controller.call("CreateVolume", {
        name: this.#subject.name,
        capacityRange: { requiredBytes: String(gibibyte) },
        volumeCapabilities: [this.#capability()],
        parameters: {},
      });
      this.#volumeId = volume?.volumeId ?? "";
      this.#volumeContext = volume?.volumeContext ?? {};
      return this.#volumeId;
    });
  }

  async #publishToNode(): Promise<string> {
    const { publishContext } = await this.#controller.call(
      "ControllerPublishVolume",
      this.#publishRequest(this.#stage.nodeId),
    );
    this.#publishContext = publishContext;
    return this.#published().nqn.replace(/^.*?:/, "…:");
  }

  #published(): PublishContext {
    return parsePublishContext(this.#publishContext, this.#volumeId);
  }

  async #refuseSecondNode(): Promise<string> {
    try {
      await this.#controller.call("ControllerPublishVolume", this.#publishRequest(this.#stage.otherNodeId));
    } catch (error) {
      if (codeOf(error) === "FAILED_PRECONDITION") return "refused, as it must be";
      throw error;
    }
    throw new Error("A second node got the volume while the first one holds it");
  }

  async #stageVolume(): Promise<string> {
    await this.#node.call("NodeStageVolume", {
      volumeId: this.#volumeId,
      publishContext: this.#publishContext,
      stagingTargetPath: this.#staging,
      volumeCapability: this.#capability(),
      volumeContext: this.#volumeContext,
    });
    return `mayFormat=${this.#published().mayFormat}`;
  }

  async #publishTarget(): Promise<void> {
    await this.#node.call("NodePublishVolume", {
      volumeId: this.#volumeId,
      publishContext: this.#publishContext,
      stagingTargetPath: this.#staging,
      targetPath: this.#target,
      volumeCapability: this.#capability(),
      readonly: false,
      volumeContext: this.#volumeContext,
    });
  }

  async #stats(minBytes: bigint): Promise<string> {
    const request = { volumeId: this.#volumeId, volumePath: this.#target, stagingTargetPath: this.#staging };
    const { usage } = await this.#node.call("NodeGetVolumeStats", request);
    const bytes = BigInt(usage.find((entry) => entry.unit === "BYTES")?.total ?? 0);
    // A file system uses a part of its device itself.
    const least = this.#subject.kind === "block" ? minBytes : minBytes * 9n / 10n;
    if (bytes < least) throw new Error(`The volume shows ${bytes} bytes, expected at least ${least}`);
    return `${bytes >> 20n} MiB`;
  }

  async #expandController(): Promise<string> {
    const { capacityBytes } = await this.#controller.call("ControllerExpandVolume", {
      volumeId: this.#volumeId,
      capacityRange: { requiredBytes: String(2n * gibibyte) },
      volumeCapability: this.#capability(),
    });
    return `${BigInt(capacityBytes) >> 20n} MiB`;
  }

  async #expandNode(): Promise<string> {
    await this.#node.call("NodeExpandVolume", {
      volumeId: this.#volumeId,
      volumePath: this.#target,
      stagingTargetPath: this.#staging,
      capacityRange: { requiredBytes: String(2n * gibibyte) },
      volumeCapability: this.#capability(),
    });
    return "grown";
  }

  async #write(): Promise<string> {
    this.#written = await writePattern(this.#dataPath(), this.#subject.dataBytes);
    return `sha256 ${this.#written.slice(0, 12)}…`;
  }

  async #compare(): Promise<string> {
    const read = await checksumOf(this.#dataPath(), this.#subject.dataBytes);
    if (read !== this.#written) throw new Error(`The data differs: wrote ${this.#written}, read ${read}`);
    return `sha256 ${read.slice(0, 12)}… equal`;
  }

  async #unpublishTarget(): Promise<void> {
    await this.#node.call("NodeUnpublishVolume", { volumeId: this.#volumeId, targetPath: this.#target });
  }

  async #unstage(): Promise<void> {
    await this.#node.call("NodeUnstageVolume", {
      volumeId: this.#volumeId,
      stagingTargetPath: this.#staging,
    });
  }

  async #unpublishFromNode(): Promise<void> {
    const request = { volumeId: this.#volumeId, nodeId: this.#stage.nodeId };
    await this.#controller.call("ControllerUnpublishVolume", request);
  }

  async #delete(): Promise<void> {
    await this.#controller.call("DeleteVolume", { volumeId: this.#volumeId });
    this.#volumeId = "";
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

  #publishRequest(nodeId: string) {
    return {
      volumeId: this.#volumeId,
      nodeId,
      volumeCapability: this.#capability(),
      readonly: false,
      volumeContext: this.#volumeContext,
    };
  }

  #capability(): Sent<VolumeCapability> {
    const accessMode = { mode: "SINGLE_NODE_WRITER" as const };
    return this.#subject.kind === "block"
      ? { block: {}, accessMode }
      : { mount: { fsType: this.#subject.kind }, accessMode };
  }

  #dataPath(): string {
    return this.#subject.kind === "block" ? this.#target : `${this.#target}/data`;
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
