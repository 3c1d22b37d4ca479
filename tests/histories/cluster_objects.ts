import { VolumeError } from "../../src/volume/errors.ts";
import type { ContextValues } from "../../src/volume/model/publish_context.ts";
import { parsePublishedExport, publishedCounter } from "../../src/volume/model/parse_context.ts";
import type { ClusterAttachment, ClusterView } from "../../src/volume/ports/cluster_view.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { aClusterVolume } from "../fakes/cluster_view.ts";
import type { HistoryEvent } from "./events.ts";
import type { Process } from "./process.ts";
import { type ApiCutStep, maxForgets } from "./schedule.ts";

/** A call of an attacher, or any other. */
export type AttacherCall = Pick<Extract<HistoryEvent, { kind: "call" }>, "verb" | "of" | "node">;

/** A VolumeAttachment. */
interface Attachment {
  readonly volumeId: string;
  readonly nodeName: string;
  attached: boolean;
  deleting: boolean;
  publishContext: ContextValues;
}

/** What an attachment wants of the controller. */
export interface Wish {
  readonly volumeId: string;
  readonly nodeName: string;
  readonly verb: "publish" | "unpublish";
}

function wishOf({ volumeId, nodeName, deleting }: Attachment): Wish {
  return { volumeId, nodeName, verb: deleting ? "unpublish" : "publish" };
}

/** How long a request waits for an API server that does not answer, in milliseconds. */
const hangsMs = 30_000;

/** How long an answer of a slow one takes to come, in milliseconds. */
const slowMs = 4_000;

/** The cluster's objects, as the attacher makes and deletes them, and the API server that shows them. */
export class ClusterObjects {
  readonly #attachments = new Map<string, Attachment>();
  /** What there was before each of the last steps. */
  #snapshots: (readonly Attachment[])[] = [];
  /** What is wrong with the API server. */
  #away: ApiCutStep["how"] | undefined;
  /** How many requests no answer came to. */
  unanswered = 0;
  readonly #record: (event: HistoryEvent) => void;
  /** The PersistentVolumes that the legacy driver has left. */
  readonly #legacy: readonly string[];
  readonly #listMs: number;
  /** Nodes of which the cluster shows no id now. */
  readonly #unnamed = new Set<string>();
  /** Volumes that two PersistentVolumes name. */
  readonly #twice = new Set<string>();

  /** @param listMs how long an answer with all attachments takes to come, in milliseconds */
  constructor(record: (event: HistoryEvent) => void, legacy: readonly string[] = [], listMs = 0) {
    this.#record = record;
    this.#listMs = listMs;
    this.#legacy = legacy;
  }

  /** Whether the cluster shows the id of a node from now on. */
  name(node: string, isNamed: boolean): void {
    if (isNamed) this.#unnamed.delete(node);
    else this.#unnamed.add(node);
  }

  /** Whether a second PersistentVolume names a volume from now on. */
  nameTwice(id: string, isTwice: boolean): void {
    if (isTwice) this.#twice.add(id);
    else this.#twice.delete(id);
  }

  isNamedTwice(id: string): boolean {
    return this.#twice.has(id);
  }

  get isAway(): boolean {
    return this.#away === "refuses" || this.#away === "hangs";
  }

  get #isSlow(): boolean {
    return this.#away === "slow" || this.#away === "busy";
  }

  /** From now on no process reaches the API server, or soon; undefined mends that. */
  cut(how: ApiCutStep["how"] | undefined): void {
    this.#away = how;
  }

  /** A step begins: a later one may bring the attachments of now back. */
  begins(): void {
    const now = this.#attachments.values().map((one) => ({ ...one })).toArray();
    this.#snapshots = [now, ...this.#snapshots].slice(0, maxForgets + 1);
  }

  /** The attachments of some steps ago come back. */
  restore(forgets: number): void {
    const before = (this.#snapshots[forgets] ?? this.#snapshots.at(-1)!).map((one) => ({ ...one }));
    this.#record({ kind: "cluster-restored" });
    for (const { volumeId: of, nodeName: node } of this.#attachments.values()) {
      this.#record({ kind: "attachment", of, node, nqn: undefined });
    }
    this.#attachments.clear();
    for (const attachment of before) {
      const { volumeId: of, nodeName: node, attached, publishContext } = attachment;
      this.#attachments.set(`${of} ${node}`, attachment);
      if (attached) this.#record({ kind: "attachment", of, node, nqn: publishContext["nqn"] });
    }
  }

  /** The attachments that there are, complete or not, as `volume node`. */
  wanted(): string[] {
    return [...this.#attachments.keys()];
  }

  /** Whether any node has an attachment of the volume, or waits for one. */
  isWanted(volumeId: string): boolean {
    return this.#attachments.values().some((one) => one.volumeId === volumeId);
  }

  /** Whether the node has an attachment of the volume that is not being deleted. */
  hasAttachment(volumeId: string, nodeName: string): boolean {
    return this.#attachments.get(`${volumeId} ${nodeName}`)?.deleting === false;
  }

  /** Whether the attacher detaches the volume from the node: until that is done it does not attach it again. */
  isDetaching(volumeId: string, nodeName: string): boolean {
    return this.#attachments.get(`${volumeId} ${nodeName}`)?.deleting ?? false;
  }

  /** The publish context that a kubelet passes to its node; undefined while the volume is not attached there. */
  contextOf(volumeId: string, nodeName: string): ContextValues | undefined {
    const found = this.#attachments.get(`${volumeId} ${nodeName}`);
    return found?.attached ? found.publishContext : undefined;
  }

  /** Whether this driver has given a node an epoch of the volume. */
  hasEpoch(volumeId: string): boolean {
    return this.#attachments.values().some((one) =>
      one.volumeId === volumeId && publishedCounter(parsePublishedExport(one.publishContext)) > 0
    );
  }

  /** What the attachments that are complete want. */
  complete(): readonly Wish[] {
    return [...this.#attachments.values()].filter(({ attached }) => attached).map(wishOf);
  }

  /** What others still want, because their calls have failed or gone. */
  incomplete(): readonly Wish[] {
    return [...this.#attachments.values()].filter(({ attached, deleting }) => !attached || deleting).map(
      wishOf,
    );
  }

  /** The legacy driver has attached a volume. */
  attachedBefore(volumeId: string, nodeName: string, publishContext: ContextValues): void {
    const attachment = { volumeId, nodeName, attached: true, deleting: false, publishContext };
    this.#attachments.set(`${volumeId} ${nodeName}`, attachment);
    this.#record({ kind: "attachment", of: volumeId, node: nodeName, nqn: publishContext["nvme_nqn"] });
  }

  /** The attacher begins to attach or detach, as pods want it. */
  began({ verb, of, node = "" }: AttacherCall): void {
    const key = `${of} ${node}`;
    const found = this.#attachments.get(key);
    if (verb === "unpublish" && found !== undefined) found.deleting = true;
    if (verb !== "publish" || found !== undefined) return;
    const attachment = { volumeId: of, nodeName: node, attached: false, deleting: false, publishContext: {} };
    this.#attachments.set(key, attachment);
  }

  /** The attacher was answered OK. It makes no object again that is gone meanwhile. */
  succeeded({ verb, of, node = "" }: AttacherCall, publishContext: ContextValues = {}): void {
    const key = `${of} ${node}`;
    const found = this.#attachments.get(key);
    if (found === undefined) return;
    if (verb === "unpublish") this.#attachments.delete(key);
    else if (verb === "publish") Object.assign(found, { attached: true, publishContext });
    else return;
    const nqn = verb === "publish" ? publishContext["nqn"] : undefined;
    this.#record({ kind: "attachment", of, node, nqn });
  }

  /** The objects as a process reads them. */
  viewFor(process: Process): ClusterView {
    const reader = (by: "call" | "loop") => <T>(value: () => T, takesMs = 0) => {
      return async ({ signal }: Pick<CallContext, "signal">) => {
        await this.ask(process, signal);
        const answer = value();
        if (takesMs > 0) await process.clock.sleep(takesMs, signal);
        if (this.#isSlow) await this.#waitFor(process, by, signal);
        await process.alive();
        return answer;
      };
    };
    const [read, readForCall] = [reader("loop"), reader("call")];
    const all = () =>
      [...this.#attachments.values()].map(({ publishContext, ...one }): ClusterAttachment => ({
        ...one,
        nodeId: this.#unnamed.has(one.nodeName) ? undefined : one.nodeName,
        // A name of its own, so that nothing takes it for the id.
        nodeName: `host-${one.nodeName}`,
        published: parsePublishedExport(publishContext),
      }));
    return {
      volumes: read(() => this.#legacy.map((id) => aClusterVolume(id))),
      othersHandles: read(() => new Set<string>()),
      snapshotHandles: read(() => undefined),
      attachments: read(() =>
        all().map(({ volumeId, nodeId, attached, published }) => ({
          volumeId: volumeId!,
          nodeId: nodeId ?? "",
          attached,
          sinceSeconds: undefined,
          epochCounter: publishedCounter(published),
        }))
      ),
      allAttachments: read(all, this.#listMs),
      latestEpoch: (volumeId, context) =>
        readForCall(() =>
          Math.max(
            0,
            ...all().filter((one) => one.volumeId === volumeId).map(({ published }) =>
              publishedCounter(published)
            ),
          )
        )(context),
      objectsOf: (volumeId) => Promise.resolve(this.isNamedTwice(volumeId) ? ["pv", "another-pv"] : []),
      // Names that hold a volume's id and the texts by which files are found: no plate is taken for anything else.
      names: read(() =>
        [...new Set([...this.#legacy, ...all().map(({ volumeId }) => volumeId!)])].map((id) => ({
          id,
          namespace: "snap-pvc",
          name: `${id}.snap-${id}`,
          className: "pvc-class",
        }))
      ),
      volumeContext: () => ({}),
      unknownVolumeAttachments: read(() => []),
      assertAttachmentsReadable: readForCall(() => {}),
    };
  }

  /**
   * A process asks the API server for anything.
   *
   * @throws {VolumeError} unavailable when the process does not reach it
   */
  async ask({ clock, isWithoutApi }: Process, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.isAway && !isWithoutApi) return;
    this.unanswered++;
    if (this.#away !== "refuses") await clock.sleep(hangsMs, signal);
    throw new VolumeError("unavailable", "Cannot reach the API server");
  }

  /** Waits until a slow API server has answered. @throws {VolumeError} unavailable when it does not */
  async #waitFor({ clock, slowApi }: Process, by: "call" | "loop", signal: AbortSignal): Promise<void> {
    if (slowApi === undefined) return await clock.sleep(slowMs, signal);
    try {
      await slowApi.read(by, signal);
    } catch (cause) {
      this.unanswered++;
      signal.throwIfAborted();
      throw new VolumeError("unavailable", "Cannot reach the API server", { cause });
    }
  }
}
