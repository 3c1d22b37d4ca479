import type { NodeDeps } from "../../src/node/deps.ts";
import { StagingStore } from "../../src/node/state/staging_store.ts";
import type { Process } from "./process.ts";
import { isContext } from "./router_link.ts";

/** The operations on a node that take time. */
const slowOperations: readonly string[] = [
  "connect",
  "rescan",
  "disconnect",
  "forceDisconnect",
  "probe",
  "format",
  "check",
  "grow",
  "mountDevice",
  "bindFolder",
  "unmount",
];

/** What is to be known of slow operations. */
export interface SlowOperations {
  /** Returns how long the next one of a call takes, in milliseconds. */
  readonly takesMs: (requestId: string) => number;
  /** Called when one has ended in all its time. @param nqn of the device that it was for; "" for none */
  readonly ended: (name: string, nqn: string) => void;
}

/**
 * Returns a node's parts as a process of the driver uses them. Slow operations take time, and have their effect in the midst of
 * it. Nothing that a process began goes on after its death.
 */
export function portsFor(process: Process, deps: NodeDeps, slow: SlowOperations): NodeDeps {
  const own = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]) =>
          run(process, () => value.apply(target, args), name, args, slow);
      },
    });
  const { clock } = process;
  const paths = own(deps.paths);
  return {
    ...deps,
    clock,
    connector: own(deps.connector),
    mounts: own(deps.mounts),
    filesystems: own(deps.filesystems),
    devices: own(deps.devices),
    paths,
    stagingStore: new StagingStore({ ...deps, ...deps.settings, clock, paths }),
  };
}

async function run(
  process: Process,
  operation: () => unknown,
  name: string | symbol,
  args: readonly unknown[],
  slow: SlowOperations,
): Promise<unknown> {
  const context = args.find(isContext);
  const isSlow = context !== undefined && slowOperations.includes(String(name));
  const halfMs = isSlow ? slow.takesMs(context.requestId) / 2 : 0;
  if (halfMs > 0) await process.clock.sleep(halfMs, context!.signal);
  else if (process.isDead) await process.alive();
  try {
    const result = await operation();
    if (halfMs > 0) await process.clock.sleep(halfMs, context!.signal);
    if (isSlow) slow.ended(String(name), nqnOf(args[0]));
    return result;
  } finally {
    if (process.isDead) await process.alive();
  }
}

function nqnOf(device: unknown): string {
  return typeof device === "object" && device !== null && "nqn" in device ? String(device.nqn) : "";
}
