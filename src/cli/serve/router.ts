import type { RouterConfig } from "../config/router_settings.ts";
import { type HostKey, parseHostKeys } from "../../routeros/ssh/host_key.ts";
import { safeVersions } from "../../routeros/console/router_info.ts";
import { observedBy, type RouterObserver } from "../../routeros/ssh/observer.ts";
import { Session } from "../../routeros/ssh/session.ts";
import { Ssh2Transport, type SshAuthentication } from "../../routeros/ssh/ssh_transport.ts";
import { freshTransport, type SshTransport } from "../../routeros/ssh/transport.ts";
import { RouterVolumeStore, type RouterVolumeStoreOptions } from "../../routeros/store/volume_store.ts";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageAbout } from "../../volume/error_messages.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";

/** The adapters of a connection to the router. */
export interface RouterAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Reads a file of credentials. */
  readText(path: string): Promise<string>;
  /** Wraps the transport, to record what goes through it. */
  readonly through?: ((transport: SshTransport) => SshTransport) | undefined;
}

/** Options of a session with the router. */
export interface SessionOptions {
  /** Receives what the client does, besides the log. */
  readonly observers?: readonly RouterObserver[] | undefined;
  /** Why nothing may be sent now, see `SessionOptions.fence`. */
  readonly fence?: (() => string | undefined) | undefined;
  /** Called with the host keys of each connection, see `Ssh2Options.presented`. */
  readonly presented?: ((hostKey: string, others: readonly string[]) => void) | undefined;
}

/**
 * Makes the store of a router. It connects with the first command. The files of credentials are read now, so that an
 * unusable one is reported at once, and again for each connection.
 *
 * @throws {VolumeError} invalid when a key file, a password file or a host key cannot be used
 */
export async function openRouter(
  config: RouterConfig,
  adapters: RouterAdapters,
  options: SessionOptions = {},
): Promise<RouterVolumeStore> {
  return new RouterVolumeStore(await openSession(config, adapters, options));
}

/**
 * Makes the session of a router's stores, as {@linkcode openRouter} does.
 *
 * @throws {VolumeError} invalid when a key file, a password file or a host key cannot be used
 */
export async function openSession(
  config: RouterConfig,
  adapters: RouterAdapters,
  { observers = [], fence, presented }: SessionOptions,
): Promise<Pick<RouterVolumeStoreOptions, "session" | "clock" | "random" | "observer">> {
  const { clock, random, log } = adapters;
  const warning = (message: string) => log.warn(message, { router: config.address });
  const { target } = await openTransport(config, { ...adapters, warning });
  const open = () => openTransport(config, { ...adapters, warning: () => {}, fence, presented });
  const fresh = freshTransport(target, open);
  const transport = adapters.through?.(fresh) ?? fresh;
  const observer = observedBy(routerLog(config, log), ...observers);
  return {
    session: new Session({ transport, clock, random, observer, ...fence === undefined ? {} : { fence } }),
    clock,
    random,
    observer,
  };
}

/**
 * Makes the transport to a router. It does not connect yet.
 *
 * @throws {VolumeError} invalid when a key file, a password file or a host key cannot be used
 */
export async function openTransport(
  config: RouterConfig,
  adapters: Pick<RouterAdapters, "readText"> & Pick<SessionOptions, "fence" | "presented"> & {
    warning(message: string): void;
  },
): Promise<SshTransport> {
  return new Ssh2Transport({
    host: config.address,
    port: config.port,
    user: config.user,
    authentication: await readAuthentication(config, adapters),
    hostKeys: config.insecureSkipVerify ? "insecure" : await readHostKeys(config, adapters),
    warning: adapters.warning,
    fence: adapters.fence,
    presented: adapters.presented,
  });
}

/** Logs the connection's events: one line for each command at debug, one for each change of state. */
function routerLog(config: RouterConfig, log: Logger): RouterObserver {
  const routerLogger = log.with({ router: config.address });
  return {
    command: (event) => routerLogger.debug("router command", { ...event }),
    connection: ({ state, reason }) => {
      const level = state === "backing-off" ? "warn" : "info";
      routerLogger[level](`router connection: ${state}`, reason === undefined ? {} : { reason });
    },
    breaker: (event) => {
      const level = event.state === "closed" ? "info" : "warn";
      const { state, cause, failures, nextTryAtMs } = event;
      const nextTry = nextTryAtMs === undefined ? {} : { nextTry: new Date(nextTryAtMs).toISOString() };
      routerLogger[level](`router breaker: ${state}`, { state, cause, failures, ...nextTry });
    },
    identified: (router) => {
      const level = router.supported ? "info" : "warn";
      routerLogger[level]("router", { ...router });
      if (router.sshExploited) {
        routerLogger.warn(
          `RouterOS has holes in SSH by which routers are being taken over, closed in ${safeVersions}: upgrade it, and ` +
            "until then limit who reaches its SSH",
          { version: router.version },
        );
      }
    },
    unfit: (reason) => routerLogger.error("router cannot be used", { reason }),
    warning: (message) => routerLogger.warn(message),
  };
}

type Readers = Pick<RouterAdapters, "readText">;

async function readAuthentication(config: RouterConfig, adapters: Readers): Promise<SshAuthentication> {
  if (config.keyFile !== undefined) {
    return { privateKey: await readSecret("rds-key", config.keyFile, adapters) };
  }
  const path = config.passwordFile ?? "";
  const password = (await readSecret("rds-password-file", path, adapters)).replace(/\r?\n$/, "");
  // The file is just being written: with an empty password the router would count a failed login.
  if (password === "") {
    throw new VolumeError("invalid", `Cannot use the password because its file is empty: file=${path}`);
  }
  return { password };
}

async function readSecret(flag: string, path: string, adapters: Readers): Promise<string> {
  try {
    return await adapters.readText(path);
  } catch (cause) {
    const reason = messageAbout(path, cause);
    if (/^\.{0,2}\//.test(path)) {
      throw new VolumeError("invalid", `Cannot read the file of --${flag}: file=${path}: ${reason}`, {
        cause,
      });
    }
    // The path may be the secret itself, which the reason repeats.
    throw new VolumeError(
      "invalid",
      `Cannot read the file of --${flag}: its value is hidden because it does not look like a path; write it as /… or ./…`,
    );
  }
}

/**
 * The host keys that the router may present. A text that begins with a slash is a file of them: no key and no
 * known_hosts line does.
 *
 * @throws {VolumeError} invalid when a file or a line cannot be read, or none is left
 */
export async function readHostKeys(config: RouterConfig, adapters: Readers): Promise<HostKey[]> {
  const texts = config.hostKeys.map((text) =>
    text.startsWith("/") ? readSecret("rds-host-key", text, adapters) : text
  );
  return (await Promise.all(texts)).flatMap((text) => parseHostKeys(text, config.address, config.port));
}
