import { SingleFlight } from "../async/single_flight.ts";
import type { Clock } from "../volume/ports/system.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import {
  listKept,
  parseVolume,
  type PersistentVolume,
  type RawPersistentVolume,
  volumesPath,
} from "./objects.ts";

/** How old a list may be before a missing volume, or the question for all objects of one, causes a new one, in milliseconds. */
const relistMs = 5_000;

/** The persistent volumes of this driver by volume id, as of the last list; a missing one causes a new list. */
export class PersistentVolumes {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;
  readonly #driverName: string;
  /** Several may name one volume. */
  #all: readonly PersistentVolume[] = [];
  #byId: ReadonlyMap<string, PersistentVolume> = new Map();
  #listedMs = -Infinity;
  readonly #listing = new SingleFlight<void>();

  constructor(options: { readonly api: KubernetesApi; readonly clock: Clock; readonly driverName: string }) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#driverName = options.driverName;
  }

  /** All volumes of the last list. */
  get all(): readonly PersistentVolume[] {
    return this.#all;
  }

  /** The object of that volume in the last list. */
  known(volumeId: string): PersistentVolume | undefined {
    return this.#byId.get(volumeId);
  }

  /**
   * Reads the object's present state; undefined when it is gone, or now belongs to another volume. @throws {ApiError}
   */
  async read(
    { name, volumeId }: PersistentVolume,
    signal: AbortSignal,
  ): Promise<PersistentVolume | undefined> {
    const raw = await this.#api.request<RawPersistentVolume>({
      method: "GET",
      path: `${volumesPath}/${name}`,
      signal,
    });
    const volume = parseVolume(raw, this.#driverName);
    return volume?.volumeId === volumeId ? volume : undefined;
  }

  /**
   * The object of that volume, after a new list if it is not known; waits while the last list is too young for another.
   */
  async find(volumeId: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const known = this.known(volumeId);
    if (known !== undefined) return known;
    const listedMs = this.#listedMs;
    const waitMs = listedMs + relistMs - this.#clock.monotonicMs();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
    // Another caller may have listed meanwhile. (A timer can be early, so the time alone does not show that.)
    if (this.#listedMs === listedMs) await this.list(signal);
    return this.known(volumeId);
  }

  /**
   * The object of that volume in its present state: it may be bound to another claim since the last list, or made
   * again.
   */
  async current(volumeId: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const known = await this.find(volumeId, signal);
    const read = known === undefined ? undefined : await this.#readIfThere(known, signal);
    if (known === undefined || read !== undefined) return read;
    await this.list(signal);
    return this.known(volumeId);
  }

  /**
   * Every object that names that volume, after a new list if the last one is old: another object may have been made since.
   * While none can be read, the last list counts, if there was any. If there are several objects, each is read again; one
   * that cannot be read counts as it was.
   *
   * @throws {ApiError} when nothing was ever listed, and that is not possible
   * @throws whatever the signal's reason is
   */
  async namesakes(volumeId: string, signal: AbortSignal): Promise<readonly PersistentVolume[]> {
    await this.#refresh(signal);
    const known = this.#all.filter((one) => one.volumeId === volumeId);
    if (known.length < 2) return known;
    const read = known.map(async (one) => {
      try {
        return await this.#readIfThere(one, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ApiError) return one;
        throw error;
      }
    });
    return (await Promise.all(read)).filter((one) => one !== undefined);
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    if (this.#clock.monotonicMs() - this.#listedMs < relistMs) return;
    try {
      await this.list(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ApiError) || this.#listedMs === -Infinity) throw error;
    }
  }

  async #readIfThere(known: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    try {
      return await this.read(known, signal);
    } catch (error) {
      if (ApiError.is(error, 404)) return undefined;
      throw error;
    }
  }

  /**
   * Lists them, page by page; one list at a time, which goes on for the others when one of them leaves.
   *
   * @throws {ApiError}
   * @throws {VolumeError} the reason of the signal, or cancelled, when that ends first
   */
  async list(signal: AbortSignal): Promise<void> {
    await this.#listing.runDuringCall(signal, (shared) => this.#list(shared));
  }

  /**
   * All objects in their present state, page by page. Thousands take little memory: unchanged ones of the last list are
   * reused, and the others share what is the same in all volumes of a class.
   *
   * @param api serves the pages
   * @throws {ApiError} when a page cannot be read
   */
  async readAll(signal: AbortSignal, api = this.#api): Promise<readonly PersistentVolume[]> {
    const contexts = new Map<string, PersistentVolume["attributes"]>();
    const keep = (raw: RawPersistentVolume) => {
      const known = this.known(raw.spec?.csi?.volumeHandle ?? "");
      if (known !== undefined && isVersion(known, raw)) return known;
      const volume = parseVolume(raw, this.#driverName);
      if (volume === undefined) return undefined;
      const text = JSON.stringify(volume.attributes);
      const attributes = contexts.get(text) ?? volume.attributes;
      contexts.set(text, attributes);
      return { ...volume, attributes };
    };
    return await listKept(api, { path: volumesPath, signal }, keep);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const volumes = await this.readAll(signal);
    this.#all = volumes;
    this.#byId = new Map(volumes.map((volume) => [volume.volumeId, volume]));
    this.#listedMs = this.#clock.monotonicMs();
  }
}

/** Whether an object is unchanged: every change gives it another version. */
function isVersion({ uid, resourceVersion }: PersistentVolume, { metadata }: RawPersistentVolume): boolean {
  return uid !== "" && resourceVersion !== "" && metadata?.uid === uid &&
    metadata.resourceVersion === resourceVersion;
}
