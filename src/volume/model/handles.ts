const nameForm = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/** Whether a router may have this name: that of a DNS label, at most 32 characters. */
export function isBackendName(name: string): boolean {
  return nameForm.test(name);
}

/** An id as it is known outside of the controller: `<backend>/<id>`, or the id alone. */
export interface SplitHandle {
  /** "" for an id without a prefix. */
  readonly backend: string;
  readonly id: string;
}

/**
 * Takes a handle apart. What has another form than `<backend>/<id>` is taken for an id without a prefix, whose own check
 * refuses a slash.
 */
export function splitHandle(handle: string): SplitHandle {
  const at = handle.indexOf("/");
  const [backend, id] = [handle.slice(0, at), handle.slice(at + 1)];
  const isPrefixed = at > 0 && isBackendName(backend) && id !== "" && !id.includes("/");
  return isPrefixed ? { backend, id } : { backend: "", id: handle };
}

/**
 * The handle as it stands in NQNs and names of files. No slot has a colon, so that no two handles share one.
 *
 * @param handle a checked one
 */
export function encodeHandle(handle: string): string {
  return handle.replace("/", ":");
}

/** The handle that {@linkcode encodeHandle} was given. */
export function decodeHandle(encoded: string): string {
  return encoded.replace(":", "/");
}

/** What one router's ids are called outside: the border between the world of one router and the cluster. */
export class HandleBorder {
  /** `<backend>/`, or "" for the router whose ids have no prefix. */
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** The handle of an id of this router. */
  handleOf(id: string): string {
    return this.prefix + id;
  }

  /** The id behind a handle; undefined when it is another router's, or nobody's. */
  idOf(handle: string): string | undefined {
    const { backend, id } = splitHandle(handle);
    const prefix = backend === "" ? "" : `${backend}/`;
    return prefix === this.prefix ? id : undefined;
  }
}
