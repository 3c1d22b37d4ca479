import { describeFailure } from "../host/network.ts";
import { VolumeError } from "../volume/errors.ts";

/** A byte stream: the part of `Deno.TcpConn` that is used. */
export interface ByteStream {
  /** Returns how many bytes arrived; null when the other side has ended. */
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** Opens a connection to an address and a port. */
export type OpenStream = (address: string, port: number) => Promise<ByteStream>;

/** Opens a TCP connection. */
export async function openTcp(address: string, port: number): Promise<ByteStream> {
  const connection = await Deno.connect({ hostname: address, port, transport: "tcp" });
  // Nagle's algorithm would delay each command by 40 ms.
  connection.setNoDelay(true);
  return connection;
}

/** Describes why a connection could not be opened. */
export function connectFailure(error: unknown, address: string, port: number): VolumeError {
  const where = `address=${address} port=${port}`;
  const reason = error instanceof Deno.errors.ConnectionRefused
    ? "nothing listens there"
    : `the connection failed (${error instanceof Error ? describeFailure(error) : error})`;
  return new VolumeError("unavailable", `Cannot reach the NVMe target because ${reason}: ${where}`, {
    cause: error,
  });
}
