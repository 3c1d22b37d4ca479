import assert from "node:assert/strict";
import { parseLogHeader, parseRecords, recordBytes } from "./discover.ts";
import { assertUnreadable } from "../../tests/support/nvme_host.ts";
import { viewOf } from "./wire.ts";

function record(transport: number, kind: number, port: string, nqn: string, address: string): number[] {
  const bytes = new Uint8Array(recordBytes);
  bytes.set([transport, 1, kind]);
  const put = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  put(32, port);
  put(256, nqn);
  put(512, address);
  return [...bytes];
}

Deno.test("parseRecords() reads subsystems, and leaves out other discovery services", () => {
  const bytes = Uint8Array.from([
    ...record(3, 2, "4420", "nqn.a", "10.0.0.1"),
    ...record(3, 1, "4420", "nqn.2014-08.org.nvmexpress.discovery", "10.0.0.2"),
    ...record(3, 3, "4420", "nqn.2014-08.org.nvmexpress.discovery", "10.0.0.1"),
    ...record(1, 2, "4421   ", "n".repeat(223), "fe80::1      "),
    ...record(77, 2, "none", "nqn.c", ""),
    // Half a record.
    3,
    1,
    2,
  ]);
  assert.deepEqual(parseRecords(bytes), [
    { nqn: "nqn.a", address: "10.0.0.1", port: 4420, transport: "tcp" },
    { nqn: "n".repeat(223), address: "fe80::1", port: 4421, transport: "rdma" },
    { nqn: "nqn.c", address: "", port: 0, transport: "77" },
  ]);
});

function header(generation: bigint, records: bigint, format: number): Uint8Array {
  const bytes = new Uint8Array(recordBytes);
  const view = viewOf(bytes);
  view.setBigUint64(0, generation, true);
  view.setBigUint64(8, records, true);
  view.setUint16(16, format, true);
  return bytes;
}

Deno.test("parseLogHeader() reads the header of a log", () => {
  assert.deepEqual(parseLogHeader(header(2n ** 60n, 3n, 0)), { generation: 2n ** 60n, records: 3 });
});

Deno.test("parseLogHeader() throws unavailable for a log in another format, or with too many records", () => {
  assertUnreadable(() => parseLogHeader(header(1n, 1n, 1)), /recfmt=1/);
  assertUnreadable(() => parseLogHeader(header(1n, 2n ** 63n, 0)), /too long/);
});
