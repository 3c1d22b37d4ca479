import { connect, type Http2Server, type Http2Session } from "node:http2";
import { setImmediate } from "node:timers";
import type { Server } from "@grpc/grpc-js";
import { VolumeError } from "../../volume/errors.ts";

/**
 * Has a session, or every session when it is given their prototype, be destroyed a turn later than asked.
 *
 * Deno's node:http2 destroys a session as soon as its last stream is closed or a GOAWAY comes in, from within the native
 * parser that is still reading that very frame. The parser then goes on in freed memory; seen on 2.9.6: a segmentation
 * fault or the abort `stream->closed_next == NULL` in every third process that served 500 clients of grpc-js, which say
 * goodbye with a GOAWAY as grpc-go's do (https://github.com/denoland/deno/issues/36788 tells of the same abort).
 */
export function deferDestroy(target: Pick<Http2Session, "destroy">): void {
  const destroy = target.destroy;
  target.destroy = function (this: Http2Session, error?: Error, code?: number): void {
    setImmediate(() => destroy.call(this, error, code));
  };
}

/**
 * Guards every session that a server will have on what it has bound so far.
 *
 * grpc-js gives no other way to its HTTP/2 servers than a member that its types call private.
 *
 * @throws {VolumeError} internal when grpc-js keeps them elsewhere by now
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
 * Guards every session of this process that there will be, those of clients included: for programs that are a client
 * themselves, where the goodbye of a server has the same effect. Doing it again changes nothing.
 */
export function guardClientSessions(): void {
  // Only a session leads to the prototype of sessions; this one is gone before it could reach anybody.
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
