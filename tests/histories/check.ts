import { calmViolations } from "./calm.ts";
import { type Call, type Image, isSo, type Kernel } from "./claims.ts";
import { Contents } from "./contents.ts";
import type { HistoryEvent } from "./events.ts";
import { counterOf, Exports } from "./exports.ts";
import { Sharing } from "./sharing.ts";

type Answer = Extract<HistoryEvent, { kind: "answer" }>;

/** A call that has begun, with the facts since then by which its answer is judged. */
interface OpenCall extends Call {
  /** Whether the claim of an OK was true at some moment since the call began. */
  held: boolean;
  /** The NQNs under which its volume was exported during the call. */
  readonly exported: Set<string>;
  /** Whether a later call that undoes it has been answered OK. */
  isUndone: boolean;
  /** The NQN under which its volume was exported when it began. */
  readonly before: string | undefined;
  /** The attachments when it began, with their NQNs, by `volume node`. */
  readonly attached: ReadonlyMap<string, string>;
  /** The snapshots that have been ready since it began. */
  readonly finished: Set<string>;
  /** Whether what it needs was not there at some moment since it began. */
  wasMissing: boolean;
  /** Whether its volume was there when it began, and as the call wants it. */
  readonly was: { readonly isThere: boolean; readonly isSo: boolean };
}

/**
 * Returns one line for each promise that a history broke; none when it kept them all. These promises matter most, beside those of
 * calm.ts and exports.ts:
 *
 * - Two nodes can never write to one image at once, unless a virtual machine moves between them; never three.
 * - Only a writer changes data, and a read returns the last acknowledged data.
 * - A file system is made only on a blank image, and never where data was.
 * - The claim of an OK was true at some moment between the call and its answer; at the answer, when the opposite call
 *   has begun and was answered OK meanwhile.
 * - An epoch is later than that of any attachment of another node, if the cluster could be asked, now and when it began.
 * - After an unpublish, and after some rounds, no export is older than an attachment. After some rounds none is unwanted.
 * - An export that a node was given stays until a call or a person takes it back, and so does the node's connection.
 * - A snapshot or clone has the data that its source had between the first call and the answer. A snapshot keeps it.
 * - A list has the snapshots that are ready, and no others.
 * - Nothing is left when everything is deleted.
 * - An image is removed only after a call to delete it, and never while a node has it. Other owners' images are never
 *   removed.
 */
export function violations(history: readonly HistoryEvent[]): string[] {
  const checker = new Checker();
  for (const event of history) checker.take(event);
  return checker.found;
}

class Checker {
  readonly found: string[] = [];
  readonly #images = new Map<string, Image>();
  readonly #kernels = new Map<string, Kernel>();
  readonly #calls = new Map<number, OpenCall>();
  readonly #forgotten = new Set<OpenCall>(); // Which an earlier cluster does not know: nobody waits for them.
  /** The node to which an NQN was given, by NQN. */
  readonly #nodeOfNqn = new Map<string, string>();
  readonly #exports = new Exports();
  /** The nodes that hold a volume, as `volume node`: from the OK of the publish to the call to unpublish. */
  readonly #holders = new Set<string>();
  /** NQNs of calls that failed while the cluster did not answer either: the next call goes on under what it finds. */
  readonly #begunBlind = new Set<string>();
  /** The exports that nodes were given and still rely on, as `volume nqn`. */
  readonly #served = new Set<string>();
  /** What an expansion has turned off of these, with the NQN, by volume: it is to be on again. */
  readonly #toggled = new Map<string, string>();
  /** The NQN under which each volume was exported when the router showed its disk last. */
  readonly #shown = new Map<string, string | undefined>();
  readonly #contents = new Contents();
  /** Whether the router has had an earlier configuration. */
  #isRestored = false;
  /** Whether the cluster has had earlier attachments. */
  #isClusterRestored = false;
  readonly #sharing = new Sharing();
  /** Whether the OK'd create of each volume asked for other parameters. */
  readonly #madeOtherwise = new Map<string, boolean>();
  /** Volumes with a person's note. */
  readonly #noted = new Set<string>();
  /** Volumes and snapshots for which a delete was called. */
  readonly #unwanted = new Set<string>();

  take(event: HistoryEvent): void {
    if (event.kind === "call") this.#begin(event);
    else if (event.kind === "answer") this.#answer(event);
    else if (event.kind === "image") this.#image(event);
    else if (event.kind === "kernel") this.#kernel(event);
    else if (event.kind === "write") this.#write(event);
    else if (event.kind === "read") this.#violated(...this.#contents.read(event));
    else if (event.kind === "format") this.#violated(...this.#contents.formatted(event));
    else if (event.kind === "others-lost") this.#violated(`the data of ${event.of} is lost`);
    else if (event.kind === "router") this.#violated(event.line);
    else if (event.kind === "stuck") this.#violated("a call goes on long after its time");
    else if (event.kind === "left") this.#violated(`${event.of} is left`);
    else if (event.kind === "edited") this.#edited(event);
    else if (event.kind === "noted") this.#noted[event.isThere ? "add" : "delete"](event.of);
    else if (event.kind === "cluster-restored") this.#clusterRestored();
    else if (event.kind === "resting") this.#exports.resting(this.#images.values());
    else if (event.kind === "blanked") this.#contents.blanked(event.of);
    else if (event.kind === "attachment") this.#exports.attachment(event.of, event.node, event.nqn);
    else if (event.kind === "rested") {
      this.#violated(...this.#exports.rested(this.#images.values(), event.wanted, this.#ownerOf));
      if (event.wanted !== undefined && event.cuts !== true) this.#violated(...this.#stayingOff());
    } else if (event.kind === "crashed") this.#crash(event.node);
    else if (event.kind === "pods") this.#sharing.pods(event.of, event.nodes, event.pairs);
    else if (event.kind === "given-up") this.#givenUp(event.node, event.of, event.what);
    else this.#reboot(event.forgets);
  }

  #edited({ of, exported, wanted }: Extract<HistoryEvent, { kind: "edited" }>): void {
    this.#release(of);
    if (exported !== undefined) this.#exports.byHand(of, exported);
    if (exported === undefined || !wanted || this.#isRestored) return;
    const isHeld = [...this.#holders].some((holder) => holder.startsWith(`${of} `));
    const isCalled = this.#calls.values().some((call) => call.of === of);
    if (!isHeld && !isCalled) this.#exports.turnedOn(of, exported);
  }

  #reboot(forgets: boolean): void {
    if (forgets) {
      this.#isRestored = true;
      this.#holders.clear();
      this.#sharing.restored();
      this.#noted.clear();
      // Only an attachment tells of a later epoch than that of an earlier record.
      const isTold = (of: string) => !this.#isClusterRestored && this.#exports.isAttached(of);
      this.#contents.restored(this.#images.keys().filter((of) => !isTold(of)), this.#kernels.values());
    }
    if (forgets) {
      this.#served.clear();
      this.#toggled.clear();
    }
    this.#exports.rebooted();
  }

  /** What nodes were given since is taken back, and what the router forgets besides nobody knows. */
  #clusterRestored(): void {
    if (this.#isRestored) this.#contents.untold(this.#images.keys());
    this.#isClusterRestored = true;
    for (const call of this.#calls.values()) this.#forgotten.add(call);
    this.#holders.clear();
    this.#served.clear();
    this.#toggled.clear();
  }

  /** The node that was given an NQN; undefined where several may be. */
  readonly #ownerOf = (of: string, nqn: string) =>
    this.#sharing.isShared(of) ? undefined : this.#nodeOfNqn.get(nqn);

  /** Nothing would ever take down what is left there. */
  #givenUp(node: string, of: string, what: "stage" | "publish"): void {
    const kernel = this.#kernels.get(`${of} ${node}`);
    if (kernel === undefined) return;
    const isLeft = what === "publish" ? kernel.published : kernel.staged || kernel.connected.length > 0;
    if (isLeft) this.#violated(`${node} keeps ${of} after a final error of its ${what}`);
  }

  #crash(node: string): void {
    for (const [key, kernel] of this.#kernels) {
      if (kernel.node === node) {
        this.#kernels.set(key, { ...kernel, connected: [], staged: false, published: false });
      }
    }
  }

  /** What rounds have not turned on again, though a node has it and is attached. An earlier state says nothing of that. */
  #stayingOff(): readonly string[] {
    if (this.#isRestored || this.#isClusterRestored) return [];
    return [...this.#holders].flatMap((holder) => {
      const [of, node] = holder.split(" ") as [string, string];
      const image = this.#images.get(of);
      const isOff = image?.bytes !== undefined && image.exported === undefined && !image.elsewhere;
      return isOff && this.#exports.attached.has(holder) ? [`${of} stays off, and ${node} has it`] : [];
    });
  }

  /** From now on that node does not rely on the volume's export, or none. */
  #release(of: string, node?: string): void {
    this.#toggled.delete(of);
    for (const served of this.#served) {
      const [volume, nqn] = served.split(" ") as [string, string];
      const isOthers = node !== undefined && (this.#ownerOf(of, nqn) ?? node) !== node;
      if (volume === of && !isOthers) this.#served.delete(served);
    }
  }

  #begin(call: Call): void {
    const { verb, of, node, source } = call;
    if (verb === "delete" || verb === "deleteSnapshot") {
      this.#unwanted.add(of);
      this.#madeOtherwise.delete(of);
      this.#contents.unwanted(of);
      for (const { finished } of this.#calls.values()) finished.delete(of);
    }
    // What is made again after a call to delete it may be a different one.
    const begins = { of, source, isThere: this.#images.get(of)?.exists === true };
    // One that is still being deleted goes, whoever asks for it again meanwhile; another call may have done that already.
    const isGoing = this.#calls.values().some((one) => one.of === of && one.verb.startsWith("delete"));
    const isAnother = (verb === "snapshot" || verb === "create") &&
      (isGoing ? this.#unwanted.has(of) && !begins.isThere : this.#unwanted.delete(of));
    if (verb === "create" && isAnother) {
      this.#contents.beginAgain(begins);
      return this.#open(call);
    }
    if (source !== undefined) this.#contents.begin({ ...begins, source }, isAnother);
    if (verb === "publish") {
      const having = [...this.#holders, ...this.#exports.attached.keys()].filter((one) =>
        one.startsWith(`${of} `)
      );
      // A node that has left without giving it up writes again where an export comes back that somebody turned off.
      const writers = this.#writersOf(of, this.#sharing.lastOpen(of));
      this.#sharing.asked(of, node!, [...writers, ...having.map((one) => one.split(" ")[1]!)]);
    }
    if (verb === "unpublish") {
      this.#holders.delete(`${of} ${node}`);
      this.#release(of, node);
    }
    this.#open(call);
  }

  #open(call: Call): void {
    this.#exports.called(call.of);
    const image = this.#images.get(call.of);
    const open: OpenCall = {
      ...call,
      held: false,
      exported: new Set(),
      isUndone: false,
      before: image?.exported,
      attached: new Map(this.#exports.attached),
      finished: new Set(this.#contents.snapshots()),
      wasMissing: false,
      was: { isThere: image?.exists === true, isSo: this.#holds(call, image) },
    };
    this.#calls.set(call.call, open);
    this.#watch(open);
  }

  /** Records whether the claim of the call's OK is true now. */
  #watch(call: OpenCall): void {
    const image = this.#images.get(call.of);
    if (image?.exported !== undefined) call.exported.add(image.exported);
    call.held ||= this.#holds(call, image);
    // What is to be made lacks only its source.
    call.wasMissing ||= this.#images.get(call.source ?? call.of)?.bytes === undefined;
  }

  #holds(call: Call, image: Image | undefined): boolean {
    const kernel = this.#kernels.get(`${call.of} ${call.node}`);
    const owner = image?.exported === undefined ? undefined : this.#nodeOfNqn.get(image.exported);
    return isSo(call, { image, kernel, owner, isShared: this.#sharing.isShared(call.of) });
  }

  #answer({ call: number, error, nqn, ready, listed, compared, refused, calm, undisturbed }: Answer): void {
    const call = this.#calls.get(number);
    if (call === undefined) throw new Error(`call ${number} never began`);
    this.#calls.delete(number);
    const { verb, of, node } = call;
    const off = this.#toggled.get(of);
    if (verb === "expand" && undisturbed && off !== undefined) this.#violated(`an expansion left ${off} off`);
    if (verb === "publish" || verb === "unpublish") {
      this.#sharing.answered({ of, node: node!, verb }, error, compared === true);
      const own = call.before !== undefined && this.#nodeOfNqn.get(call.before) === node;
      if (error === undefined || (verb === "unpublish" && own)) {
        this.#exports.unpublished(of, call.before, error);
      }
    }
    if (error === "internal") this.#violated(`${call.verb} of ${call.of} met what nobody had thought of`);
    if (error === "not-found" && !call.wasMissing && verb !== "grow") {
      this.#violated(`${verb} of ${of} found none, and it was there`);
    }
    if (calm !== undefined) {
      const facts = { ...call.was, isNoted: this.#noted.has(call.of) };
      this.#violated(...calmViolations(call, error, calm, facts));
    }
    if (error !== undefined && verb === "publish" && compared === false) {
      for (const begun of call.exported) if (begun !== call.before) this.#begunBlind.add(begun);
    }
    if (error !== undefined || ready === false) return;
    if (refused && verb === "unpublish") {
      this.#violated(`unpublish of ${of} was answered OK after it was refused`);
    }
    if (verb === "create") this.#assertAsMade(call);
    if (listed !== undefined) this.#listed(call.finished, listed);
    const to = node === undefined ? "" : ` for ${node}`;
    const isSo = verb === "publish" ? this.#isPublished(call, nqn!) : this.#isSo(call);
    this.#undo(call);
    const when = call.isUndone ? "no longer" : "never";
    if (!isSo) this.#violated(`${verb} of ${of}${to} was answered OK and ${when} so`);
    if (verb === "publish" && compared) {
      this.#assertLater(call, nqn!);
      this.#endBlind(of);
    }
    if (verb === "publish" && !this.#forgotten.has(call)) this.#publish(of, node!, nqn!);
    // Neither an earlier record nor a cluster that is away tells that the volume was ever written.
    if (verb === "publish" && compared === false && this.#isRestored) this.#contents.untold([of]);
    const { exported } = this.#images.get(of) ?? {};
    const isDetached = verb === "unpublish" && compared && exported !== undefined;
    if (isDetached) this.#violated(...this.#exports.olderThan(of, exported, call.attached));
    if (verb === "create" || verb === "snapshot") {
      this.#violated(...this.#contents.made(verb, of, this.#images.get(of)));
    }
  }

  /** Later calls for the same name ask for the same. */
  #assertAsMade({ of, otherwise: other }: Call): void {
    const otherwise = other === true;
    const before = this.#madeOtherwise.get(of) ?? otherwise;
    if (before !== otherwise) this.#violated(`create of ${of} was answered OK, and it has other parameters`);
    this.#madeOtherwise.set(of, before);
  }

  #listed(ready: ReadonlySet<string>, listed: readonly string[]): void {
    const missing = [...ready].filter((id) => !listed.includes(id));
    for (const id of missing) this.#violated(`the snapshot ${id} is ready, and was not listed`);
    const others = listed.filter((id) => !this.#contents.isSourced(id));
    for (const id of others) this.#violated(`${id} was listed, and nobody has asked for that snapshot`);
  }

  /** Whether the export was there at some moment; now, when a later call has undone it. */
  #isPublished({ of, exported, isUndone }: OpenCall, nqn: string): boolean {
    return isUndone ? this.#images.get(of)?.exported === nqn : exported.has(nqn);
  }

  #isSo(call: OpenCall): boolean {
    return call.isUndone ? this.#holds(call, this.#images.get(call.of)) : call.held;
  }

  /** The OK of a call undoes the earlier opposite calls that still run. */
  #undo({ call: number, verb, of, node }: OpenCall): void {
    const opposite = verb === "publish" ? "unpublish" : verb === "unpublish" ? "publish" : undefined;
    for (const call of this.#calls.values()) {
      if (call.verb === opposite && call.of === of && call.node === node && call.call < number) {
        call.isUndone = true;
      }
    }
  }

  #publish(of: string, node: string, nqn: string): void {
    const other = this.#nodeOfNqn.get(nqn) ?? node;
    const holder = [...this.#holders].find((one) => isOfOther(one, of, node));
    const isAlone = !this.#sharing.isShared(of);
    if (isAlone && other !== node) this.#violated(`${node} was given the NQN of ${other}: ${nqn}`);
    else if (isAlone && holder !== undefined) {
      this.#violated(`${node} was given ${of}, and ${holder.split(" ")[1]} has it`);
    }
    this.#nodeOfNqn.set(nqn, node);
    // A node whose unpublish has been called meanwhile no longer relies on the export.
    const leaves = this.#calls.values().some((call) =>
      call.verb === "unpublish" && call.of === of && call.node === node
    );
    if (leaves) return;
    this.#holders.add(`${of} ${node}`);
    // What is no later than another node's attachment, begun while the cluster did not answer, the next round withdraws.
    const isEarlier = this.#exports.attached.entries().some(([key, other]) =>
      isOfOther(key, of, node) && counterOf(nqn) <= counterOf(other)
    );
    if (this.#images.get(of)?.exported === nqn && !isEarlier) this.#served.add(`${of} ${nqn}`);
  }

  /** Whoever is answered after the cluster has answered goes on under an epoch that the cluster knows. */
  #endBlind(of: string): void {
    for (const begun of this.#begunBlind) if (begun.includes(`:${of}:`)) this.#begunBlind.delete(begun);
  }

  /** No node that was given the volume before may take the epoch for its own, or for an older one. */
  #assertLater({ of, node, attached, before }: OpenCall, nqn: string): void {
    // What a node was given while the cluster did not answer it is given again: it may use the volume by then.
    if (this.#nodeOfNqn.get(nqn) === node) return;
    // Whoever joins begins no epoch.
    const joins = this.#sharing.isShared(of) && before === nqn;
    for (const [key, other] of attached) {
      const isOther = isOfOther(key, of, node) && this.#exports.attached.get(key) === other;
      if (!isOther || counterOf(nqn) > counterOf(other)) continue;
      if (joins || (this.#sharing.isShared(of) && nqn === other)) continue;
      // A node takes another epoch of its counter for later than its own.
      if (counterOf(nqn) === counterOf(other) && nqn !== other && this.#begunBlind.has(nqn)) continue;
      this.#violated(`${node} was given ${nqn}, no later than ${other} of another node`);
    }
  }

  #image({ kind: _, ...image }: Image & { readonly kind: string }): void {
    const { of } = image;
    const before = this.#images.get(of);
    this.#images.set(of, image);
    this.#sharing.opened(of, image.open);
    const went = before?.exists && !image.exists && !image.hidden;
    if (went && this.#contents.isMade(of) && !this.#unwanted.has(of)) {
      this.#violated(`${of} went, and nobody asked for it`);
    }
    if (before?.bytes !== undefined && image.bytes === undefined && !image.hidden) {
      for (const [volume, node] of this.#holders.values().map((holder) => holder.split(" "))) {
        if (volume === of) this.#violated(`${of} went while ${node} had it`);
      }
    }
    if (!image.hidden) this.#showed(of, image.exported);
    if (before?.exported !== image.exported) this.#violated(...this.#exports.changed(of, before?.exported));
    const isUnwanted = this.#unwanted.has(of);
    this.#violated(...this.#contents.image(image, { isUnwanted, isShared: this.#sharing.isShared(of) }));
    this.#changed(of);
  }

  #showed(of: string, exported: string | undefined): void {
    const before = this.#shown.get(of);
    this.#shown.set(of, exported);
    if (before === exported) return;
    const isServed = this.#served.delete(`${of} ${before}`);
    const isToggle = exported === undefined &&
      this.#calls.values().some((call) => call.verb === "expand" && call.of === of);
    if (isServed && isToggle) this.#toggled.set(of, before!);
    else if (isServed) this.#violated(`${before} was taken away, and nobody asked for that`);
    if (exported === undefined) return;
    // A node that has given it up meanwhile relies on it no more.
    const isKept = this.#kernels.values().some((one) => one.of === of && one.connected.includes(exported));
    if (this.#toggled.get(of) === exported && isKept) this.#served.add(`${of} ${exported}`);
    this.#toggled.delete(of);
  }

  #kernel({ kind: _, ...kernel }: Kernel & { readonly kind: string }): void {
    const { node, of, connected } = kernel;
    const before = this.#kernels.get(`${of} ${node}`);
    this.#kernels.set(`${of} ${node}`, kernel);
    const lost = before?.staged ? before.connected.filter((nqn) => !connected.includes(nqn)) : [];
    const isAsked = this.#calls.values().some((call) =>
      call.verb.endsWith("stage") && call.of === of && call.node === node
    );
    for (const nqn of isAsked ? [] : lost) {
      if (this.#served.has(`${of} ${nqn}`)) {
        this.#violated(`${node} gave ${nqn} up, and nobody asked for that`);
      }
    }
    this.#changed(of);
  }

  #changed(of: string): void {
    for (const call of this.#calls.values()) if (call.of === of || call.source === of) this.#watch(call);
    const writers = this.#writersOf(of);
    if (!this.#sharing.allows(of, writers)) {
      this.#violated(`${writers.join(" and ")} can write to ${of} at once`);
    }
  }

  #writersOf(of: string, open = this.#images.get(of)?.open ?? []): readonly string[] {
    return this.#kernels.values().filter((kernel) =>
      kernel.of === of && kernel.connected.some((nqn) => open.includes(nqn))
    ).map(({ node }) => node).toArray();
  }

  #write({ kind: _, ...write }: Extract<HistoryEvent, { kind: "write" }>): void {
    const { connected = [] } = this.#kernels.get(`${write.of} ${write.node}`) ?? {};
    this.#contents.written({ ...write, through: connected, isShared: this.#sharing.isShared(write.of) });
  }

  #violated(...lines: readonly string[]): void {
    for (const line of lines) if (!this.found.includes(line)) this.found.push(line);
  }
}

/** Whether the key of an attachment is of another node that has the volume. */
function isOfOther(key: string, of: string, node: string | undefined): boolean {
  return key.startsWith(`${of} `) && key !== `${of} ${node}`;
}
