import { runLimited } from "../async/deadline.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { ControllerDeps } from "./deps.ts";

/** What has to be tidied up is, within 10 seconds, also after the end of the call that it was done for. */
export async function tidy(
  { clock }: Pick<ControllerDeps, "clock">,
  name: string,
  work: (context: CallContext) => Promise<unknown>,
): Promise<void> {
  const { signal } = new AbortController();
  await runLimited(clock, { name, timeoutMs: 10_000, signal }, work);
}
