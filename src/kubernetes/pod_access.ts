import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { ClusterAccess } from "./access.ts";

/** A pod's API server, and where its service account is mounted. */
export interface PodAddress {
  readonly host: string;
  readonly port: string;
  readonly folder: string;
}

/**
 * Access with the service account of a pod. For it the client library is not loaded, which takes tens of megabytes.
 *
 * @throws {TypeError} when host and port make no URL
 * @throws {Error} when the namespace is there and cannot be read
 */
export function podAccess({ host, port, folder }: PodAddress): ClusterAccess {
  return {
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    namespace: readNamespace(folder),
    hasProxy: false,
    async apply(options) {
      const [ca, token] = await Promise.all([
        readFile(`${folder}/ca.crt`),
        readFile(`${folder}/token`, "utf-8"),
      ]);
      options.ca = ca;
      options.headers = {
        ...options.headers as Record<string, string>,
        authorization: `Bearer ${token.trim()}`,
      };
    },
  };
}

function readNamespace(folder: string): string {
  try {
    return readFileSync(`${folder}/namespace`, "utf-8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
