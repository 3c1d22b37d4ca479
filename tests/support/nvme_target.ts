// The simulated NVMe/TCP target, and a host that sends exactly what a test chooses.

import { FakeClock } from "../fakes/clock.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { type ExportAccess, identityFor } from "../../src/simulator/model/exports.ts";
import { viewOf } from "../../src/simulator/nvme/command.ts";
import { NvmeTarget } from "../../src/simulator/nvme/target.ts";

/** The NQN of an export, in most tests. */
export const nqn = "nqn.2000-02.com.mikrotik:a:1-ab12cd34";
/** The host's NQN, in all tests. */
export const hostNqn = "nqn.2014-08.org.nvmexpress:uuid:11111111-1111-4111-8111-111111111111";
const hostId = "11111111-1111-4111-8111-111111111111";

/** A call with enough time for everything over loopback. */
export function call(ms = 10_000): CallContext {
  return { requestId: "test", signal: AbortSignal.timeout(ms) };
}

/** A target, with a file to serve. */
export interface Fixture {
  readonly target: NvmeTarget;
  readonly clock: FakeClock;
  /** 4 MiB, each byte other than zero. */
  readonly file: string;
  readonly access: ExportAccess;
  readonly where: {
    readonly address: string;
    readonly port: number;
    readonly nqn: string;
    readonly hostNqn: string;
    readonly hostId: string;
  };
}

/** Runs a test with a target that serves the file under {@linkcode nqn}; afterwards nobody is connected any more. */
export async function withTarget<Result>(
  test: (fixture: Fixture) => Promise<Result>,
): Promise<Result> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const clock = new FakeClock();
  const target = new NvmeTarget({ clock });
  try {
    const file = `${folder}/a.img`;
    await Deno.writeFile(file, pattern());
    const access = { sizeBytes: 4n << 20n, port: target.port, hosts: undefined, identity: identityFor(nqn) };
    target.serve(nqn, file, access);
    const where = { address: "127.0.0.1", port: target.port, nqn, hostNqn, hostId };
    return await test({ target, clock, file, access, where });
  } finally {
    await target.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** An answer, parsed as far as tests need it. */
export interface RawAnswer {
  readonly type: number;
  readonly flags: number;
  readonly bytes: Uint8Array;
  /** Fields of a completion: command id, status with its type in bits 8 to 10, result. */
  readonly commandId: number;
  readonly status: number;
  readonly result: number;
}

/** A host whose every byte the test chooses. */
export class RawHost implements Disposable {
  readonly #socket: Deno.TcpConn;
  #held = new Uint8Array(0);

  private constructor(socket: Deno.TcpConn) {
    this.#socket = socket;
  }

  /** Connects, and exchanges the first PDUs by default. */
  static async connect(port: number, { initialise = true, alignment = 0 } = {}): Promise<RawHost> {
    const host = new RawHost(await Deno.connect({ hostname: "127.0.0.1", port }));
    if (initialise) {
      await host.send(initRequest(alignment));
      await host.answer();
    }
    return host;
  }

  /** Connects a queue of an enabled controller: for queue 0 an admin queue, which creates the controller. */
  static async join(
    port: number,
    { queueId = 0, controllerId = 0xffff, flags = 0, name = nqn, keepAliveMs = 0, alignment = 0 } = {},
  ): Promise<RawHost & { readonly controllerId: number }> {
    const host = await RawHost.connect(port, { alignment });
    const data = connectData(controllerId, name);
    await host.send(command({ opcode: 0x7f, type: 1, queueId, depth: 32, flags, keepAliveMs, data }));
    const { status, result } = await host.answer();
    if (status !== 0) {
      host[Symbol.dispose]();
      throw new Error(`refused: ${status.toString(16)}`);
    }
    if (queueId === 0) {
      await host.send(command({ opcode: 0x7f, type: 0, word11: 0x14, word12: 0x460001 }));
      await host.answer();
    }
    return Object.assign(host, { controllerId: result & 0xffff });
  }

  async send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#socket.write(bytes.subarray(at));
  }

  /** The next PDU; throws when the connection ends instead. */
  async answer(): Promise<RawAnswer> {
    const bytes = await this.#whole(8).then((start) => this.#whole(viewOf(start).getUint32(4, true)));
    this.#held = this.#held.slice(bytes.length);
    const view = viewOf(bytes);
    return {
      type: bytes[0]!,
      flags: bytes[1]!,
      bytes,
      result: view.getUint32(8, true),
      commandId: view.getUint16(20, true),
      status: view.getUint16(22, true) >> 1 & 0x7ff,
    };
  }

  /** Resolves when the target has ended the connection; it ignores anything before. */
  async ended(): Promise<void> {
    try {
      while (await this.#socket.read(new Uint8Array(4096)) !== null);
    } catch (error) {
      if (!(error instanceof Deno.errors.ConnectionReset)) throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  async #whole(length: number): Promise<Uint8Array> {
    const chunk = new Uint8Array(65_536);
    while (this.#held.length < length) {
      const count = await this.#socket.read(chunk);
      if (count === null) throw new Error("the target has ended the connection");
      this.#held = Uint8Array.from([...this.#held, ...chunk.subarray(0, count)]);
    }
    return this.#held.subarray(0, length);
  }
}

/** The first PDU of a host. */
export function initRequest(alignment = 0): Uint8Array {
  const bytes = new Uint8Array(128);
  bytes.set([0, 0, 128, 0, 128, 0, 0, 0, 0, 0, alignment]);
  return bytes;
}

/** A test's description of a command. */
export interface RawCommand {
  readonly opcode: number;
  readonly id?: number;
  /** The type of a fabrics command, or the namespace. */
  readonly type?: number;
  readonly word10?: number;
  readonly word11?: number;
  readonly word12?: number;
  readonly word13?: number;
  readonly queueId?: number;
  readonly depth?: number;
  readonly flags?: number;
  readonly keepAliveMs?: number;
  /** Data in the command's own PDU. */
  readonly data?: Uint8Array;
  /** The length of data that is not in it: to be read, or to be requested by the target. */
  readonly length?: number;
  readonly descriptor?: number;
}

/** A command as a PDU. */
export function command(raw: RawCommand): Uint8Array {
  const { data = new Uint8Array(0), length = data.length } = raw;
  const bytes = new Uint8Array(72 + data.length);
  const view = viewOf(bytes);
  bytes.set([4, 0, 72, data.length > 0 ? 72 : 0]);
  view.setUint32(4, bytes.length, true);
  bytes.set([raw.opcode, 0x40], 8);
  view.setUint16(10, raw.id ?? 0, true);
  view.setUint32(12, raw.type ?? 0, true);
  view.setUint32(40, length, true);
  bytes[47] = raw.descriptor ?? (data.length > 0 ? 0x01 : 0x5a);
  const text = [
    raw.word10 ?? (raw.queueId ?? 0) << 16,
    raw.word11 ?? (raw.depth === undefined ? 0 : raw.depth - 1 | (raw.flags ?? 0) << 16),
    raw.word12 ?? raw.keepAliveMs ?? 0,
    raw.word13 ?? 0,
  ];
  text.forEach((word, index) => view.setUint32(48 + 4 * index, word, true));
  bytes.set(data, 72);
  return bytes;
}

/** The data of a Connect. */
export function connectData(controllerId: number, name: string, host = hostNqn): Uint8Array {
  const data = new Uint8Array(1024);
  viewOf(data).setUint16(16, controllerId, true);
  data.set(new TextEncoder().encode(name), 256);
  data.set(new TextEncoder().encode(host), 512);
  return data;
}

/** Requested data, as a PDU. */
export function dataPdu(
  id: number,
  tag: number,
  offset: number,
  data: Uint8Array,
  last: boolean,
): Uint8Array {
  const bytes = new Uint8Array(24 + data.length);
  const view = viewOf(bytes);
  bytes.set([6, last ? 4 : 0, 24, 24]);
  view.setUint32(4, bytes.length, true);
  view.setUint16(8, id, true);
  view.setUint16(10, tag, true);
  view.setUint32(12, offset, true);
  view.setUint32(16, data.length, true);
  bytes.set(data, 24);
  return bytes;
}

function pattern(): Uint8Array {
  const bytes = new Uint8Array(4 << 20);
  for (let at = 0; at < bytes.length; at++) bytes[at] = 1 + at % 251;
  return bytes;
}
