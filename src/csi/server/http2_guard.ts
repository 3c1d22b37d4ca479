import { connect, type Http2Server, type Http2Session } from "node:http2";
import { setImmediate } from "node:timers";
import type { Server } from "@grpc/grpc-js";
import { VolumeError } from "../../volume/errors.ts";

/**
 * Delays the destruction of a session, or of every session when `target` is their prototype, by one turn.
 *
 * Deno's node:http2 destroys a session as soon as its last stream is closed or a GOAWAY arrives, from within the native
 * parser that is still reading that very frame. The parser then goes on in freed memory. On 2.9.6, every third process
 * that served 500 clients of grpc-js ended with a segmentation fault or the abort `stream->closed_next == NULL`; these
 * clients close with a GOAWAY as grpc-go's do (https://github.com/denoland/deno/issues/36788 reports the same abort).
 */
export function deferDestroy(target: Pick<Http2Session, "destroy">): void {
  const destroy = target.destroy;
  target.destroy = function (this: Http2Session, error?: Error, code?: number): void {
    setImmediate(() => destroy.call(this, error, code));
  };
}

/**
 * Guards every future session of a server on its bound ports.
 *
 * grpc-js exposes its HTTP/2 servers only as a private member.
 *
 * @throws {VolumeError} internal when grpc-js no longer has that member
 */
export function guardSessions(server: Server): void {
  const { http2Servers } = server as unknown as { readonly http2Servers: unknown };
  if (!(http2Servers instanceof Map) || http2Servers.size === 0) {
    throw new VolumeError(
      "internal",
      "Cannot guard the HTTP/2 sessions because grpc-js does not show its servers",
    );
  }
  for (const http2Server of http2Servers.keys() as Iterable<Http2Server>) {
    http2Server.prependListener("session", deferDestroy);
  }
}

/**
 * Guards every future session of this process, including those of clients: for programs that are clients themselves,
 * where a server's GOAWAY has the same effect. A second call changes nothing.
 */
export function guardClientSessions(): void {
  // The prototype of sessions is only reachable through a session; this one is destroyed before it connects.
  const session = connect("http://127.0.0.1:1");
  session.on("error", () => session.destroy());
  const prototype = sessionPrototype(session);
  session.destroy();
  if (Object.hasOwn(prototype, GUARDED)) return;
  deferDestroy(prototype);
  Object.defineProperty(prototype, GUARDED, { value: true });
}

const GUARDED = Symbol.for("rds-csi: sessions are guarded");

function sessionPrototype(session: Http2Session): Http2Session {
  let prototype = session;
  while (!Object.hasOwn(prototype, "destroy") || !Object.hasOwn(prototype, "goaway")) {
    prototype = Object.getPrototypeOf(prototype);
    if (prototype === null) throw new VolumeError("internal", "Cannot find the prototype of HTTP/2 sessions");
  }
  return prototype;
}
