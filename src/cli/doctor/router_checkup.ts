import type { Network } from "../../host/network.ts";
import { RouterClient } from "../../doctor/router/check.ts";
import { routerChecks, runRouterChecks } from "../../doctor/router/router_checks.ts";
import { judgeProfile } from "../../doctor/router/profile.ts";
import { maxNqnTailBytes } from "../config/flag_tables.ts";
import { judgeNfsPort } from "../../doctor/router/shares.ts";
import { defaultNfsPort } from "../../volume/model/directory/handle.ts";
import { judgeNvmePort } from "../../doctor/router/storage.ts";
import { type Finding, type FindingListener, skipped, warning } from "../../volume/model/finding.ts";
import { type Handshake, readHandshake } from "../../routeros/ssh/handshake.ts";
import { judgeHostKey, judgeLogin, judgeReach, type SecretState } from "../../doctor/router/access.ts";
import type { HostKey } from "../../routeros/ssh/host_key.ts";
import { judgeKeyFile } from "../../routeros/ssh/private_key.ts";
import { Session } from "../../routeros/ssh/session.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { openTransport, readHostKeys } from "../serve/router.ts";
import type { DoctorOptions } from "./options.ts";

/** The adapters of a check-up. */
export interface CheckupAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly network: Network;
  /** Reads a file of credentials. */
  readText(path: string): Promise<string>;
}

/** How long one attempt to connect may take, in milliseconds. */
const connectMs = 5000;

/**
 * Checks everything that the driver needs of its router. A failed check prevents only the checks that depend on it.
 *
 * @throws {VolumeError} cancelled when the call is
 */
export async function checkUp(
  options: DoctorOptions,
  adapters: CheckupAdapters,
  context: CallContext,
  found: FindingListener,
): Promise<void> {
  const { finding: reach, from, unresolved } = await checkReach(options, adapters);
  found(reach);
  let volumes: readonly StoredVolume[] | undefined;
  if (reach.state === "ok") {
    const { findings, transport } = await enter(options, from, adapters, context);
    findings.forEach(found);
    if (transport === undefined) found(notRead());
    else volumes = await readInside(transport, options, adapters, context, found);
  } else found(notRead(["host-key", "login"]));
  if (options.kind === "directory") {
    return found(unresolved ? notResolved("nfs-port") : await checkNfsPort(options, adapters));
  }
  const { nqnPrefix, profile } = options;
  if (profile !== undefined) judgeProfile(profile.answers, nqnPrefix.length + maxNqnTailBytes).forEach(found);
  const { nvmePort: port } = options;
  const ports = options.nvmeAddress.split(",").map(async (address) => {
    if (unresolved && address === options.router.address) return notResolved("nvme-port");
    const reach = await adapters.network.reach(address, port, connectMs);
    return judgeNvmePort({ address, port, reach, volumes, isNode: options.isNode });
  });
  (await Promise.all(ports)).forEach(found);
}

/** Whether this machine reaches the share's NFS server. */
async function checkNfsPort(
  { router: { address }, isNode }: DoctorOptions,
  { network }: CheckupAdapters,
): Promise<Finding> {
  return judgeNfsPort({
    address,
    port: defaultNfsPort,
    reach: await network.reach(address, defaultNfsPort, connectMs),
    isNode,
  });
}

/** How the router is reached, and from which address of this machine. */
interface Arrival {
  readonly finding: Finding;
  readonly from?: string | undefined;
  /** Whether its name has no address. @default {false} */
  readonly unresolved?: true;
}

async function checkReach({ router }: DoctorOptions, { network }: CheckupAdapters): Promise<Arrival> {
  const { address, port } = router;
  let addresses: readonly string[];
  try {
    addresses = await network.resolve(address);
  } catch (error) {
    const finding = judgeReach({ address, port, addresses: messageOf(error), reach: undefined });
    return { finding, unresolved: true };
  }
  const reach = await network.reach(address, port, connectMs);
  return {
    finding: judgeReach({ address, port, addresses, reach }),
    ...reach.state === "open" ? { from: reach.from } : {},
  };
}

/** The findings about access, and the transport if access works. */
interface Entrance {
  readonly findings: readonly Finding[];
  readonly transport: SshTransport | undefined;
}

/** No credentials are sent to a router whose key is not the pinned one. */
async function enter(
  options: DoctorOptions,
  from: string | undefined,
  adapters: CheckupAdapters,
  context: CallContext,
): Promise<Entrance> {
  const { router } = options;
  const pins = await pinsOf(options, adapters);
  const handshake = await readHandshake({
    host: router.address,
    port: router.port,
    user: router.user,
    pins: typeof pins === "string" ? [] : pins,
    timeoutMs: 2 * connectMs,
  }, context.signal);
  const hostKey = judgeHostKey({
    address: router.address,
    port: router.port,
    presented: handshake.hostKey,
    failure: handshake.failure,
    from,
    pins,
    insecure: router.insecureSkipVerify,
  });
  const trusted = hostKey.state !== "problem";
  const { finding, transport } = trusted
    ? await logIn(options, { ...handshake, from }, adapters, context)
    : { finding: untried(handshake), transport: undefined };
  return { findings: [hostKey, finding], transport };
}

async function pinsOf(
  { router }: DoctorOptions,
  adapters: CheckupAdapters,
): Promise<readonly HostKey[] | string> {
  if (router.hostKeys.length === 0) return [];
  try {
    return await readHostKeys(router, adapters);
  } catch (error) {
    return messageOf(error);
  }
}

function untried({ methods, failure }: Handshake): Finding {
  const offered = methods === undefined ? failure ?? "no answer" : `the router offers ${methods.join(", ")}`;
  return warning("login", `not tried until the host key matches; ${offered}`);
}

async function logIn(
  { router }: DoctorOptions,
  { methods, open, from }: Handshake & Pick<Arrival, "from">,
  adapters: CheckupAdapters,
  { signal }: CallContext,
): Promise<{ readonly finding: Finding; readonly transport: SshTransport | undefined }> {
  const credentials = router.keyFile !== undefined
    ? "key"
    : router.passwordFile !== undefined
    ? "password"
    : "none";
  const facts = { user: router.user, methods, open, credentials, from } as const;
  if (credentials === "none") {
    return { finding: judgeLogin({ ...facts, failure: undefined }), transport: undefined };
  }
  try {
    // Its warnings are findings already.
    const transport = await openTransport(router, { ...adapters, warning: () => {} });
    (await transport.connect(signal)).close();
    return { finding: judgeLogin({ ...facts, failure: undefined }), transport };
  } catch (error) {
    const secret = await judgeSecret(router, adapters);
    return { finding: judgeLogin({ ...facts, failure: messageOf(error), secret }), transport: undefined };
  }
}

/** Judges the file of the credentials. */
async function judgeSecret(
  { keyFile, passwordFile }: DoctorOptions["router"],
  { readText }: CheckupAdapters,
): Promise<SecretState> {
  try {
    const text = await readText(keyFile ?? passwordFile ?? "");
    if (keyFile !== undefined) return judgeKeyFile(text);
    return text.trim() === "" ? "missing" : "usable";
  } catch {
    return "missing";
  }
}

/** Returns the volumes; undefined when they could not be read. */
async function readInside(
  transport: SshTransport,
  options: DoctorOptions,
  adapters: CheckupAdapters,
  context: CallContext,
  found: FindingListener,
): Promise<readonly StoredVolume[] | undefined> {
  const { clock } = adapters;
  const session = new Session({ ...adapters, transport });
  try {
    const router = new RouterClient({ ...adapters, session, context });
    const settings = {
      ...options,
      user: options.router.user,
      clock,
    };
    await runRouterChecks(router, settings, found);
    return await volumesOf(router);
  } finally {
    session.close();
  }
}

async function volumesOf(router: RouterClient): Promise<readonly StoredVolume[] | undefined> {
  try {
    return (await router.inventory()).volumes;
  } catch (error) {
    // Its checks have said what is wrong, such as a RouterOS that is too old.
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "precondition")) return undefined;
    throw error;
  }
}

/** The check of a name that is a problem already. */
function notResolved(name: string): Finding {
  return skipped(name, "not tried until the router's name can be resolved");
}

function notRead(before: readonly string[] = []): Finding {
  const names = [...before, ...routerChecks.map(({ name }) => name)];
  return warning("router", `not checked: ${names.join(", ")}`);
}
