/** The part of a request that decides its answer. */
export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
}

/**
 * Parses the head of an HTTP/1 request, of which only the first line matters here. Returns the status code of the
 * refusal for anything else: 505 for HTTP/2, also by its preface, and 400 for what is no HTTP (RFC 9112, section 3).
 *
 * @param head the text up to the empty line
 */
export function parseRequestHead(head: string): HttpRequest | 400 | 505 {
  const [line = ""] = head.split(/\r?\n/, 1);
  const [, method, target = "", version] = /^([A-Z]{1,16}) (\S+) HTTP\/(\d\.\d)$/.exec(line) ?? [];
  if (method === undefined) return 400;
  if (version !== "1.1" && version !== "1.0") return 505;
  const url = URL.parse(target.startsWith("/") ? `http://localhost${target}` : target);
  return url === null ? 400 : { method, url };
}
