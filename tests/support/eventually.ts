/** Waits until the condition holds. */
export async function eventually(isSo: () => boolean | Promise<boolean>, limitMs = 20_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!await isSo()) {
    if (performance.now() > end) throw new Error(`it is not so after ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
