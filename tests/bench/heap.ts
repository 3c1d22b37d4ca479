/** Asks an inspector the questions in order, and returns its last answer. */
async function ask(url: string, methods: readonly string[]): Promise<Record<string, number>> {
  const socket = new WebSocket(url);
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, number>>();
  const send = (id: number) => socket.send(JSON.stringify({ id, method: methods[id] }));
  socket.onopen = () => send(0);
  socket.onerror = () => reject(new Error(`The inspector does not answer: ${url}`));
  socket.onclose = () => reject(new Error(`The inspector has gone: ${url}`));
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    if (id === undefined) return; // An event.
    if (error !== undefined) reject(new Error(`${methods[id]}: ${error.message}`));
    else if (id + 1 < methods.length) send(id + 1);
    else resolve(result);
  };
  return await promise.finally(() => socket.close());
}

/**
 * What is left of the heap of a program that has an inspector at that address, and of the buffers beside it, once its garbage
 * was collected, in bytes.
 *
 * @throws {Error} when the inspector does not answer
 */
export async function liveHeapBytes(address: string): Promise<number> {
  const [{ webSocketDebuggerUrl }] = await (await fetch(`http://${address}/json/list`)).json();
  // Twice, as V8 itself does where memory is short: what the first one finalizes only the second one collects.
  const collect = "HeapProfiler.collectGarbage";
  const heap = await ask(webSocketDebuggerUrl, [collect, collect, "Runtime.getHeapUsage"]);
  const { usedSize, backingStorageSize } = heap;
  if (usedSize === undefined) throw new Error("The inspector does not tell the size of the heap");
  return usedSize + (backingStorageSize ?? 0);
}
