import assert from "node:assert/strict";
import { call } from "../../node/harness.ts";
import { type GuestNode, GuestVolume, NodeTests, sh, timed } from "../kit/node.ts";

const size = 64n << 20n;
const megabytes = 48;
/** NVMe/TCP Transport Specification, "Initialize Connection Request PDU": 128 bytes, DGST at the 11th. */
const requestBytes = 128;
const digestOffset = 11;

/** Checksums of the transport. */
export const digestRows = new NodeTests();

/** What the kernel asks a target for when it connects: bit 0 for headers, bit 1 for data. */
async function askedFor(node: GuestNode, digests: readonly ("header" | "data")[]): Promise<number> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const target = { nqn: "nqn.2000-02.com.mikrotik:pvc-0:1-0a0b0c0d", addresses: ["127.0.0.1"], port };
  const refused = assert.rejects(node.connector.connect({ ...target, digests }, call()));
  // The driver asks first, whether anybody answers there.
  (await listener.accept()).close();
  using connection = await listener.accept();
  const request = new Uint8Array(requestBytes);
  for (let length = 0; length < requestBytes;) length += await connection.read(request.subarray(length)) ?? 0;
  connection.close();
  await refused;
  return request[digestOffset]!;
}

digestRows.add("the kernel asks the target for the checksums that are wanted", async (node) => {
  const asked = [];
  for (const digests of [[], ["header"], ["data"], ["header", "data"]] as const) {
    asked.push(await askedFor(node, digests));
  }
  assert.deepEqual(asked, [0, 1, 2, 3]);
  return `DGST is ${asked.join(", ")}`;
});

digestRows.add("a volume is written and read with checksums", async (node) => {
  const took: string[] = [];
  const plain = new GuestVolume(node, "pvc-1", size);
  const kinds: readonly Record<string, string>[] = [
    {},
    { hdrDigest: "true" },
    { hdrDigest: "true", dataDigest: "true" },
  ];
  for (const volumeContext of kinds) {
    const capability = { access: "block", mode: "single-node-writer" } as const;
    await node.stage(plain, { capability, volumeContext });
    const device = await node.device(plain);
    await sh(`dd if=/dev/urandom of=/tmp/random bs=1M count=${megabytes} status=none`);
    const copy = async (from: string, to: string, flag: string) =>
      (await timed(sh(`dd if=${from} of=${to} bs=1M count=${megabytes} ${flag} status=none`)))[1];
    const writeMs = await copy("/tmp/random", device, "oflag=direct");
    const readMs = await copy(device, "/tmp/read", "iflag=direct");
    await sh("cmp /tmp/random /tmp/read && rm /tmp/random /tmp/read");
    took.push(
      `${Object.keys(volumeContext).join("+") || "none"}: ${writeMs} ms to write, ${readMs} ms to read`,
    );
    await node.unstage(plain);
  }
  return `${megabytes} MiB, ${took.join("; ")}`;
});
