/** Has something done whenever this process gets a signal, which does nothing else to it from then on. */
export function onSignal(signal: "SIGUSR1" | "SIGUSR2", listener: () => void): void {
  Deno.addSignalListener(signal, listener);
}
