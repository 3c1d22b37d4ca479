import "../host/no_deprecations.ts";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Cluster, KubeConfig } from "@kubernetes/client-node";
import { parse, YAMLParseError } from "yaml";
import type { ClusterAccess } from "./access.ts";

/**
 * Access by the current context of a kubeconfig, with every kind of credentials that the client library knows, and with
 * `tokenFile`, which it does not.
 *
 * @throws {Error} when the file cannot be read, its context names no cluster, or the server cannot be used
 */
export function kubeconfigAccess(path: string): ClusterAccess {
  const text = readFileSync(path, "utf-8");
  if (text.trim() === "") throw new Error("the file is empty");
  const config = new KubeConfig();
  const content = parseYaml(text);
  if (typeof content !== "object" || content === null) throw new Error("the file is no kubeconfig");
  config.loadFromFile(path);
  const cluster = config.getCurrentCluster();
  if (cluster?.server === undefined) throw new Error("its current context names no cluster");
  const context = config.getContextObject(config.getCurrentContext());
  if (context?.user && config.getCurrentUser() === null) {
    throw new Error(`its current context names a user that is not there: user=${context.user}`);
  }
  const tokenFile = tokenFileOf(content, context?.user);
  return {
    server: serverOf(cluster),
    namespace: context?.namespace?.trim() ?? "",
    hasProxy: Boolean(cluster.proxyUrl),
    async apply(options) {
      options.headers ??= {};
      await config.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
      if (tokenFile === undefined) return;
      // The file is renewed while this process runs; it counts before a token in the kubeconfig.
      const token = (await readFile(resolve(dirname(path), tokenFile), "utf-8")).trim();
      options.headers = { ...options.headers as Record<string, string>, Authorization: `Bearer ${token}` };
    },
  };
}

/** The library's message quotes the text, which holds credentials. */
function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    throw new Error(`the file is no YAML: line=${error.linePos?.[0].line ?? 1}`, { cause: error.code });
  }
}

/** The library would refuse every request to a server without TLS, in words of its own. */
function serverOf({ server, skipTLSVerify }: Cluster): URL {
  const url = URL.parse(server);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Error(`its server is no URL: server=${server}`);
  }
  if (url.protocol === "https:" || skipTLSVerify) return url;
  throw new Error(
    `its server has no TLS, so anyone on the way reads the token: server=${server}; use https://, or ` +
      "allow it with insecure-skip-tls-verify: true",
  );
}

function tokenFileOf(content: object, user: string | undefined): string | undefined {
  const { users } = content as { users?: readonly { name?: string; user?: { tokenFile?: string } | null }[] };
  return users?.find(({ name }) => name === user)?.user?.tokenFile || undefined;
}
