import { type ControllerConfig, readVolumeCommand } from "./config/config.ts";
import { loadRoutersParser } from "./config/backends.ts";
import { allowFormat } from "../controller/volumes/allow_format.ts";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import { createLogger, stderrSink } from "../telemetry/log.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { openRouter } from "./serve/router.ts";
import { controllerDeps } from "./serve/controller_deps.ts";

/** What `rds-csi allow-format --help` says before the flags. */
export const usage = `Usage: rds-csi allow-format VOLUME [flags]

Lets the next node that gets this volume make a file system on it, if the device then proves to be empty. For a volume
whose first publish never led to one. It must not be published. Nothing on it is touched, and every check of the node
stays: a device that holds anything is refused all the same.

Flags:
`;

/** How long the router may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi allow-format`: renews the blankness of an unpublished volume. */
export async function allowFormatCommand(args: string[], io: CommandIo): Promise<number> {
  const parser = await loadRoutersParser(args);
  const { config, id } = readVolumeCommand(args, io.env, Deno.readTextFileSync, parser);
  await withDeps(config, io, async (deps, context) => {
    await allowFormat(deps, id, context);
  });
  io.out(`The volume ${id} may be formatted in its next epoch, if it is empty.`);
  return exitCodes.ok;
}

async function withDeps(
  config: ControllerConfig,
  io: CommandIo,
  work: (deps: ReturnType<typeof controllerDeps>, context: CallContext) => Promise<void>,
): Promise<void> {
  const adapters = { clock: systemClock, random: systemRandom };
  const log = createLogger({ clock: systemClock, sink: stderrSink(), level: "warn" });
  const router = await openRouter(config.router, { ...adapters, log, readText: Deno.readTextFile });
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const context = { requestId: "allow-format", signal, deadlineMs: systemClock.now() + timeoutMs };
    await work(controllerDeps(config, router, adapters, log), context);
  } finally {
    router.close();
  }
}
