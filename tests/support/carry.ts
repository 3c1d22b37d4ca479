/** Copies between two connections until one of them ends, and closes both. */
export async function carryBothWays(one: Deno.Conn, other: Deno.Conn): Promise<void> {
  const directions = [copy(one, other), copy(other, one)];
  await Promise.race(directions).finally(() => {
    for (const connection of [one, other]) close(connection);
  });
  await Promise.allSettled(directions);
}

async function copy(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  for (;;) {
    const count = await from.read(buffer);
    if (count === null) return;
    for (let written = 0; written < count;) written += await to.write(buffer.subarray(written, count));
  }
}

/** Whether an error says that a connection, or its other side, has ended or was never there. */
export function isClosed(error: unknown): boolean {
  const kinds = [
    Deno.errors.BadResource,
    Deno.errors.Interrupted,
    Deno.errors.BrokenPipe,
    Deno.errors.ConnectionReset,
    Deno.errors.ConnectionRefused,
    Deno.errors.NotFound,
  ];
  return kinds.some((kind) => error instanceof kind);
}

/** Closes what may be closed already. */
export function close(resource: { close(): void }): void {
  try {
    resource.close();
  } catch (error) {
    if (!isClosed(error)) throw error;
  }
}
