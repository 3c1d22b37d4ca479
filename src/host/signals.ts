/**
 * Calls a listener whenever this process gets a signal, which then has no other effect. SIGUSR1 is none of them: with it
 * the runtime opens the port of its inspector, whoever listens.
 */
export function onSignal(signal: "SIGUSR2", listener: () => void): void {
  Deno.addSignalListener(signal, listener);
}
