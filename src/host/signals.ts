/** Calls a listener whenever this process gets a signal, which then has no other effect. */
export function onSignal(signal: "SIGUSR1" | "SIGUSR2", listener: () => void): void {
  Deno.addSignalListener(signal, listener);
}
