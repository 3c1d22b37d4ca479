import { Buffer } from "node:buffer";
import { VolumeError } from "../../volume/errors.ts";

/** Where the server listens. */
export type Endpoint =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: "127.0.0.1"; readonly port: number };

/** The kernel's limit of a socket's path in bytes, without the final NUL (unix(7)). */
export const MAX_SOCKET_PATH_BYTES = 107;

/** Length of the temporary name to which the socket is bound at first: a dot and 7 hex digits. */
export const TEMPORARY_NAME_BYTES = 8;

/**
 * Parses `unix:///path`, `unix:/path`, a bare absolute path, or `tcp://127.0.0.1:port` (0 lets the kernel choose).
 *
 * @throws {VolumeError} invalid for anything else, naming what is allowed
 */
export function parseEndpoint(text: string): Endpoint {
  const tcp = /^tcp:\/\/127\.0\.0\.1:(\d{1,5})$/.exec(text);
  if (tcp !== null) {
    const port = Number(tcp[1]);
    if (port > 65535) throw refused(text, "a port is at most 65535");
    return { kind: "tcp", host: "127.0.0.1", port };
  }
  if (text.startsWith("tcp:")) throw refused(text, "TCP is served on 127.0.0.1 only");
  const path = /^unix:\/\/(\/.*)$/s.exec(text)?.[1] ?? /^unix:(\/(?!\/).*)$/s.exec(text)?.[1] ?? text;
  return { kind: "unix", path: socketPath(path, text) };
}

function socketPath(path: string, text: string): string {
  if (!path.startsWith("/")) throw refused(text, "the path is not absolute");
  // deno-lint-ignore no-control-regex
  if (/[\x00-\x1f\x7f]/.test(path)) throw refused(text, "the path has a control character");
  const segments = path.split("/").filter((segment) => segment !== "");
  if (segments.length === 0 || path.endsWith("/") || segments.some((s) => s === "." || s === "..")) {
    throw refused(text, "the path does not name a file plainly");
  }
  const name = segments.at(-1)!;
  const folder = segments.slice(0, -1).map((segment) => `/${segment}`).join("");
  const bytes = Buffer.byteLength(`${folder}/`) + Math.max(Buffer.byteLength(name), TEMPORARY_NAME_BYTES);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw refused(text, `its path needs ${bytes} bytes and a socket has ${MAX_SOCKET_PATH_BYTES}`);
  }
  return `${folder}/${name}`;
}

function refused(text: string, reason: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot listen on ${JSON.stringify(text)} because ${reason}: ` +
      "allowed are unix:///path, unix:/path, /path and tcp://127.0.0.1:port",
  );
}
