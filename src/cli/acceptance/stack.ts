import { type CsiClients, dial } from "../../csi/server/client.ts";
import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";
import { loadCsi } from "../../csi/server/proto.ts";
import { formatProfile, type RouterProfile } from "../../router_profile/profile.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { readServeConfig, type RouterConfig } from "../config/config.ts";
import { startDriver } from "../serve/serve.ts";
import { clusterId, nodeId, nqnPrefix, otherNodeId } from "./names.ts";

/** How a run's node reaches volumes; loop devices of a simulated router for tests. */
export type RunConnector =
  | { readonly kind: "nvme-tcp" }
  | { readonly kind: "loop"; readonly backing: string }
  /** Only the controller's half can be shown. */
  | { readonly kind: "none"; readonly reason: string };

/** What a run's driver needs. */
export interface RunDriverOptions {
  readonly router: RouterConfig;
  readonly basePath: string;
  readonly nvmeAddress: string;
  readonly nvmePort: number;
  readonly connector: RunConnector;
  /** The folder for its socket and its state. */
  readonly folder: string;
  /** What a probe has found; undefined when it found nothing. */
  readonly profile: RouterProfile | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** How long a call may take, in milliseconds. */
  readonly callMs: number;
  through(transport: SshTransport): SshTransport;
  /** Receives the driver's log. */
  sink(line: string): void;
  readText(path: string): Promise<string>;
}

/** A driver of the run's own, without a cluster. */
export interface RunDriver extends AsyncDisposable {
  readonly clients: CsiClients;
}

/** Starts the driver, with everything that it sends to the router recorded. */
export async function startRunDriver(options: RunDriverOptions): Promise<RunDriver> {
  const { clock, random, through, sink, readText, profile, callMs } = options;
  const profileText = profile === undefined ? "" : formatProfile(profile);
  const config = readServeConfig(serveArgs(options), () => undefined, () => profileText);
  const driver = await startDriver(config, { clock, random, sink, readText, through });
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
  const { router, folder, connector, basePath, nvmeAddress, nvmePort, profile } = options;
  // A runtime that cannot serve gRPC on a unix socket itself cannot dial one either.
  const endpoint = needsLegacyListener(Deno.version.deno) ? "tcp://127.0.0.1:0" : `unix://${folder}/csi.sock`;
  const flag = (name: string, value: string | undefined) => value === undefined ? [] : [`--${name}`, value];
  return [
    ...[
      "--mode",
      connector.kind === "none" ? "controller" : "all",
      "--endpoint",
      endpoint,
      "--metrics-address",
      "",
    ],
    ...["--node-id", nodeId, "--known-node", nodeId, "--known-node", otherNodeId],
    ...["--cluster-id", clusterId, "--nqn-prefix", nqnPrefix, "--audit-interval", "0s"],
    // Nothing goes on beside the steps, in whose order a replay gives their commands.
    ...["--health-interval", "0s"],
    ...["--rds-address", router.address, "--rds-port", String(router.port), "--rds-user", router.user],
    ...flag("rds-key", router.keyFile),
    ...flag("rds-password-file", router.passwordFile),
    ...router.hostKeys.flatMap((key) => ["--rds-host-key", key]),
    ...router.insecureSkipVerify ? ["--rds-insecure-skip-verify"] : [],
    ...["--base-path", basePath, "--nvme-address", nvmeAddress, "--nvme-port", String(nvmePort)],
    ...["--state-dir", `${folder}/state`, "--log-level", "debug"],
    ...profile === undefined ? [] : ["--router-profile", `${folder}/profile.json`],
    ...connector.kind === "none" ? [] : ["--connector", connector.kind],
    ...connector.kind === "loop" ? ["--loop-backing", connector.backing] : [],
  ];
}
