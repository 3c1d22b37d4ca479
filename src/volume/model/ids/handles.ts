import { assertVolumeId, isVolumeId } from "./ids.ts";

const backendNameForm = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/**
 * Checks the form of a volume id as clients know it; for one of several routers that is `<backend>/<id>`.
 *
 * @throws {VolumeError} invalid when it has another form
 */
export function assertHandle(handle: string): void {
  assertVolumeId(splitHandle(handle).id);
}

/** Whether the text has the form of a volume id as clients know it, see {@linkcode assertHandle}. */
export function isHandle(handle: string): boolean {
  return isVolumeId(splitHandle(handle).id);
}

/** The form of a router's name, for people. */
export const backendNameWords = "1 to 32 characters of a-z, 0-9 and -, with a letter or digit at both ends";

/** Whether the text may name a router: a DNS label of at most 32 characters. */
export function isBackendName(name: string): boolean {
  return backendNameForm.test(name);
}

/** An id as clients know it, split: `<backend>/<id>`, or the id alone. */
export interface SplitHandle {
  /** "" for an id without a prefix. */
  readonly backend: string;
  readonly id: string;
}

/**
 * Splits a handle. A text of another form than `<backend>/<id>` counts as an id without a prefix; the check of the id
 * refuses a slash.
 */
export function splitHandle(handle: string): SplitHandle {
  const at = handle.indexOf("/");
  const [backend, id] = [handle.slice(0, at), handle.slice(at + 1)];
  const isPrefixed = at > 0 && isBackendName(backend) && id !== "" && !id.includes("/");
  return isPrefixed ? { backend, id } : { backend: "", id: handle };
}

/**
 * The form of the handle in NQNs and file names. No slot has a colon, so every handle has its own form.
 *
 * @param handle a checked one
 */
export function encodeHandle(handle: string): string {
  return handle.replace("/", ":");
}

/** The handle from which {@linkcode encodeHandle} made the text. */
export function decodeHandle(encoded: string): string {
  return encoded.replace(":", "/");
}

/** Translates between the ids that one router uses and the volume and snapshot ids that clients know. */
export class VolumeIdPrefix {
  /** The prefix of an only router: clients use its ids unchanged. */
  static readonly none = new VolumeIdPrefix("", false);

  /** `<backend>/`, or "" for a router whose ids have no prefix. */
  readonly text: string;
  /** Whether the router is one of several: an id may then be another router's. */
  readonly isOfSeveral: boolean;

  /** @param text `<backend>/`, or "" for the default one of several routers */
  constructor(text: string, isOfSeveral = true) {
    this.text = text;
    this.isOfSeveral = isOfSeveral;
  }

  /** The client's id for an id of this router. */
  add(id: string): string {
    return this.text + id;
  }

  /** This router's id for a client's id; undefined when the id belongs to another router, or to none. */
  strip(handle: string): string | undefined {
    if (!this.isOfSeveral) return handle;
    const { backend, id } = splitHandle(handle);
    const prefix = backend === "" ? "" : `${backend}/`;
    return prefix === this.text ? id : undefined;
  }
}
