import { join } from "node:path";
import { carryBothWays, close, isClosed } from "../../support/carry.ts";
import { kubeletPort } from "./kubelet.ts";

/** Longest request to be connected, in bytes. */
const maxRequestBytes = 4096;

/**
 * Leads the API server to the kubelets of guests, which have addresses that the host does not reach. It is the proxy that
 * Kubernetes provides for where the control plane is outside the nodes' network.
 */
export class KubeletTunnel {
  /** The API server's flags by which it uses the tunnel, and asks it for nodes by their names. */
  readonly apiServerFlags: readonly string[];
  readonly #listener: Deno.UnixListener;
  /** Ports of the host's 127.0.0.1 by nodes. */
  readonly #ports = new Map<string, number>();
  readonly #connections = new Set<Deno.Conn>();
  readonly #carrying = new Set<Promise<void>>();

  private constructor(listener: Deno.UnixListener, apiServerFlags: readonly string[]) {
    this.#listener = listener;
    this.apiServerFlags = apiServerFlags;
    this.#carrying.add(this.#accept());
  }

  /** Serves at a socket in a folder, until it is closed. */
  static async serve(folder: string): Promise<KubeletTunnel> {
    const [socket, file] = [join(folder, "kubelets.sock"), join(folder, "egress.json")];
    await Deno.writeTextFile(file, JSON.stringify(egressTo(socket)));
    return new KubeletTunnel(Deno.listen({ transport: "unix", path: socket }), [
      `--egress-selector-config-file=${file}`,
      "--kubelet-preferred-address-types=Hostname",
    ]);
  }

  /** Leads to the kubelet of a node. @param port of the host's 127.0.0.1 */
  lead(node: string, port: number): void {
    this.#ports.set(node, port);
  }

  /** Ends it with all its connections. */
  async close(): Promise<void> {
    close(this.#listener);
    for (const connection of this.#connections) close(connection);
    await Promise.all(this.#carrying);
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) this.#carrying.add(this.#carry(client));
  }

  async #carry(client: Deno.Conn): Promise<void> {
    this.#connections.add(client);
    let kubelet: Deno.Conn | undefined;
    try {
      const port = this.#ports.get(await requestedNode(client));
      if (port === undefined) return await answer(client, "404 Not Found");
      kubelet = await Deno.connect({ hostname: "127.0.0.1", port });
      this.#connections.add(kubelet);
      await answer(client, "200 OK");
      await carryBothWays(client, kubelet);
    } catch (error) {
      if (!isClosed(error)) throw error;
    } finally {
      for (const connection of [client, kubelet]) {
        if (connection === undefined) continue;
        close(connection);
        this.#connections.delete(connection);
      }
    }
  }
}

/** The API server's configuration for what it asks of nodes. */
function egressTo(socket: string): object {
  const connection = { proxyProtocol: "HTTPConnect", transport: { uds: { udsName: socket } } };
  return {
    apiVersion: "apiserver.k8s.io/v1beta1",
    kind: "EgressSelectorConfiguration",
    egressSelections: [{ name: "cluster", connection }],
  };
}

/** Reads a request to be connected, and answers with the node to whose kubelet; empty when it is anything else. */
async function requestedNode(client: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(maxRequestBytes);
  let [text, length] = ["", 0];
  // Until it is answered, a client says no more than this.
  while (!text.endsWith("\r\n\r\n")) {
    const count = await client.read(buffer.subarray(length));
    if (count === null || count === 0) return "";
    length += count;
    text = new TextDecoder().decode(buffer.subarray(0, length));
  }
  return new RegExp(`^CONNECT ([^\\s:]+):${kubeletPort} `).exec(text)?.[1] ?? "";
}

async function answer(client: Deno.Conn, status: string): Promise<void> {
  await client.write(new TextEncoder().encode(`HTTP/1.1 ${status}\r\n\r\n`));
}
