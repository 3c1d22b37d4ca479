import { type CsiClients, dial } from "../../csi/server/client.ts";
import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";
import { loadCsi } from "../../csi/server/proto.ts";
import { formatProfile, type RouterProfile } from "../../router_profile/profile.ts";
import { readServeConfig } from "../config/config.ts";
import type { RouterConfig } from "../config/router_settings.ts";
import { type DriverAdapters, startDriver } from "../serve/serve.ts";

/** How a run's node reaches volumes; loop devices of a simulated router for tests and the demo. */
export type RunConnector =
  | { readonly kind: "nvme-tcp" }
  | { readonly kind: "loop"; readonly backing: string }
  /** Only the controller's half can be shown. */
  | { readonly kind: "none"; readonly reason: string };

/** What a run's driver needs. */
export interface RunDriverOptions extends DriverAdapters {
  readonly router: RouterConfig;
  readonly connector: RunConnector;
  /** The node that it is, and one that it has to refuse. */
  readonly nodeId: string;
  readonly otherNodeId: string;
  /** The folder for its socket and its state. */
  readonly folder: string;
  /** What a probe has found; undefined when it found nothing. */
  readonly profile?: RouterProfile | undefined;
  /** How long a call may take, in milliseconds. @default {as long as sidecars wait} */
  readonly callMs?: number;
  /** Further flags of `rds-csi serve`. */
  readonly flags: readonly string[];
}

/** A driver of the run's own, without a cluster. */
export interface RunDriver extends AsyncDisposable {
  readonly clients: CsiClients;
}

/** Starts the driver. */
export async function startRunDriver(options: RunDriverOptions): Promise<RunDriver> {
  const { clock, profile, callMs } = options;
  const profileText = profile === undefined ? "" : formatProfile(profile);
  const config = readServeConfig(serveArgs(options), () => undefined, () => profileText);
  const driver = await startDriver(config, options);
  const clients = dial(loadCsi(), driver.address, clock, callMs);
  return {
    clients,
    async [Symbol.asyncDispose]() {
      clients.close();
      await driver.stop(25_000);
    },
  };
}

function serveArgs(options: RunDriverOptions): string[] {
  const { router, folder, connector, nodeId, otherNodeId, profile, flags } = options;
  // A runtime that cannot serve gRPC on a unix socket itself cannot dial one either.
  const endpoint = needsLegacyListener(Deno.version.deno) ? "tcp://127.0.0.1:0" : `unix://${folder}/csi.sock`;
  const flag = (name: string, value: string | undefined) => value === undefined ? [] : [`--${name}`, value];
  return [
    ...["--mode", connector.kind === "none" ? "controller" : "all", "--endpoint", endpoint],
    ...["--metrics-address", ""],
    ...["--node-id", nodeId, "--known-node", nodeId, "--known-node", otherNodeId],
    ...["--rds-address", router.address, "--rds-port", String(router.port), "--rds-user", router.user],
    ...flag("rds-key", router.keyFile),
    ...flag("rds-password-file", router.passwordFile),
    ...router.hostKeys.flatMap((key) => ["--rds-host-key", key]),
    ...router.insecureSkipVerify ? ["--rds-insecure-skip-verify"] : [],
    ...["--state-dir", `${folder}/state`, "--log-level", "debug"],
    ...profile === undefined ? [] : ["--router-profile", `${folder}/profile.json`],
    ...connector.kind === "none" ? [] : ["--connector", connector.kind],
    ...connector.kind === "loop" ? ["--loop-backing", connector.backing] : [],
    ...flags,
  ];
}
