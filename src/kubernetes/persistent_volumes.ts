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

/** How long a list is good enough for one who misses a volume in it, in milliseconds. */
const relistMs = 5_000;

/** The persistent volumes of this driver by volume id, as of the last list; listed again when one is missed. */
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

  /** Every one of the last list. */
  get all(): readonly PersistentVolume[] {
    return this.#all;
  }

  /** The one of the last list with that volume. */
  known(volumeId: string): PersistentVolume | undefined {
    return this.#byId.get(volumeId);
  }

  /** Reads one as it is now; undefined when it is gone, or another one by now. @throws {ApiError} */
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

  /** The one with that volume, after a new list if it is not known; waits while the last list is too young for another. */
  async find(volumeId: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const known = this.known(volumeId);
    if (known !== undefined) return known;
    const listedMs = this.#listedMs;
    const waitMs = listedMs + relistMs - this.#clock.monotonicMs();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
    // Somebody else who missed one may have listed meanwhile. (A timer can be early: the time alone would not tell.)
    if (this.#listedMs === listedMs) await this.list(signal);
    return this.known(volumeId);
  }

  /** The one with that volume as it is right now: it may be bound to another claim since the last list, or made anew. */
  async current(volumeId: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const known = await this.find(volumeId, signal);
    const read = known === undefined ? undefined : await this.#readIfThere(known, signal);
    if (known === undefined || read !== undefined) return read;
    await this.list(signal);
    return this.known(volumeId);
  }

  async #readIfThere(known: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    try {
      return await this.read(known, signal);
    } catch (error) {
      if (ApiError.is(error, 404)) return undefined;
      throw error;
    }
  }

  /** Lists them, page by page; one list at a time. @throws {ApiError} */
  async list(signal: AbortSignal): Promise<void> {
    await this.#listing.run(() => this.#list(signal));
  }

  /**
   * Every one as it is now, page by page. Thousands take little memory: those that are as in the last list are given again,
   * and the others share what is the same in all volumes of a class.
   *
   * @throws {ApiError} when a page cannot be had
   */
  async readAll(signal: AbortSignal): Promise<readonly PersistentVolume[]> {
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
    return await listKept(this.#api, { path: volumesPath, signal }, keep);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const volumes = await this.readAll(signal);
    this.#all = volumes;
    this.#byId = new Map(volumes.map((volume) => [volume.volumeId, volume]));
    this.#listedMs = this.#clock.monotonicMs();
  }
}

/** Whether an object is that one, unchanged: whatever changes an object gives it another version. */
function isVersion({ uid, resourceVersion }: PersistentVolume, { metadata }: RawPersistentVolume): boolean {
  return uid !== "" && resourceVersion !== "" && metadata?.uid === uid &&
    metadata.resourceVersion === resourceVersion;
}
