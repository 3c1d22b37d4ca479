import assert from "node:assert/strict";
import { join } from "node:path";
import { close } from "../../support/carry.ts";
import { KubeletTunnel } from "./kubelet_tunnel.ts";

/** Opens a connection to the tunnel and says this; answers with it, and with what comes back first. */
async function say(folder: string, text: string): Promise<readonly [Deno.Conn, string]> {
  const connection = await Deno.connect({ transport: "unix", path: join(folder, "kubelets.sock") });
  await connection.write(new TextEncoder().encode(text));
  return [connection, await heard(connection)];
}

async function heard(connection: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(100);
  return new TextDecoder().decode(buffer.subarray(0, await connection.read(buffer) ?? 0));
}

Deno.test("KubeletTunnel carries what is said to a node by its name", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  using kubelet = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const tunnel = await KubeletTunnel.serve(folder);
  try {
    tunnel.lead("n1", kubelet.addr.port);
    const [client, answer] = await say(folder, "CONNECT n1:10250 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert.equal(answer, "HTTP/1.1 200 OK\r\n\r\n");
    using server = await kubelet.accept();
    await client.write(new TextEncoder().encode("to the kubelet"));
    assert.equal(await heard(server), "to the kubelet");
    await server.write(new TextEncoder().encode("from the kubelet"));
    assert.equal(await heard(client), "from the kubelet");
    close(client);
    assert.equal(await heard(server), "", "the kubelet sees the end");
  } finally {
    await tunnel.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("KubeletTunnel refuses other nodes, other ports and other requests", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const tunnel = await KubeletTunnel.serve(folder);
  try {
    tunnel.lead("n1", 1);
    for (const request of ["CONNECT n2:10250 HTTP/1.1", "CONNECT n1:22 HTTP/1.1", "GET / HTTP/1.1"]) {
      const [client, answer] = await say(folder, `${request}\r\n\r\n`);
      close(client);
      assert.equal(answer, "HTTP/1.1 404 Not Found\r\n\r\n", request);
    }
  } finally {
    await tunnel.close();
    await Deno.remove(folder, { recursive: true });
  }
});
