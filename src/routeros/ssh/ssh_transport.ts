import type { Buffer } from "node:buffer";
import { Socket } from "node:net";
import ssh2 from "ssh2";
import type { Client, ClientChannel, ConnectConfig } from "ssh2";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { Command } from "../console/command.ts";
import { algorithms, describeConnectFailure, preferPinned } from "./handshake.ts";
import { describeMismatch, fingerprint, type HostKey, isPinned, pinsOfOtherTypes } from "./host_key.ts";
import { Outputs } from "./output.ts";
import { readPrivateKey } from "./private_key.ts";
import type { ExecEnd, SshConnection, SshTransport } from "./transport.ts";
import { writeTogether } from "./write_together.ts";

/** How the driver authenticates. */
export type SshAuthentication =
  /** A private key in OpenSSH or PEM form, without a passphrase. */
  | { readonly privateKey: string }
  | { readonly password: string };

/** Options of {@linkcode Ssh2Transport}. */
export interface Ssh2Options {
  readonly host: string;
  /** @default {22} */
  readonly port?: number;
  readonly user: string;
  readonly authentication: SshAuthentication;
  /** The router must present one of these keys; `insecure` accepts any, for tests only. */
  readonly hostKeys: readonly HostKey[] | "insecure";
  /** Called with a warning when the host key is not checked. */
  readonly warning: (message: string) => void;
  /** Milliseconds for the whole handshake. @default {10000} */
  readonly readyTimeoutMs?: number;
  /** Why nothing may be sent now; undefined while sending is allowed. @default {always allowed} */
  readonly fence?: (() => string | undefined) | undefined;
  /** Called with the fingerprint of each host key that was accepted, and those of the pinned ones of other types. */
  readonly presented?: ((hostKey: string, others: readonly string[]) => void) | undefined;
}

/** SSH through the ssh2 library. */
export class Ssh2Transport implements SshTransport {
  readonly target: string;
  readonly #options: Ssh2Options;
  readonly #port: number;

  /** @throws {VolumeError} invalid when the private key cannot be read, or no host key is pinned */
  constructor(options: Ssh2Options) {
    const { authentication } = options;
    this.#options = "password" in authentication
      ? options
      : { ...options, authentication: { privateKey: readPrivateKey(authentication.privateKey) } };
    this.#port = options.port ?? 22;
    this.target = `${options.user}@${options.host}:${this.#port}`;
    if (options.hostKeys === "insecure") {
      options.warning(
        "INSECURE: the router's host key is NOT checked. Any machine that answers at its address gets the credentials and " +
          `controls the driver's view of the router. Use this only in tests. router=${this.target}`,
      );
    } else if (options.hostKeys.length === 0) {
      throw new VolumeError("invalid", "Cannot connect to the router because no host key is pinned");
    }
  }

  connect(signal: AbortSignal): Promise<SshConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<SshConnection>();
    const client = new ssh2.Client();
    let mismatch: string | undefined;
    let failure: unknown;
    const fail = (error: unknown) => {
      reject(describeConnectFailure(error, mismatch));
      client.destroy();
    };
    const onAbort = () => fail(new Error("aborted"));
    const connection = new Ssh2Connection(client, () => failure);
    // Without it an exec takes 90 ms instead of 3. Before there is a connection it has no effect on Deno 2.7.
    client.on("connect", () => client.setNoDelay(true));
    client.on("ready", () => resolve(connection));
    // An error may come before, with or after the close; errors after the close are ignored.
    client.on("error", (error: unknown) => {
      failure ??= error;
      fail(error);
    });
    client.on("close", () => fail(failure ?? new Error("the connection was closed")));
    client.on("keyboard-interactive", (_name, _instructions, _language, prompts, answer) => {
      const authentication = this.#options.authentication;
      answer(prompts.map(() => "password" in authentication ? authentication.password : ""));
    });
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const socket = new Socket();
      socket.connect(this.#port, this.#options.host);
      // A command is sent when the router has opened a channel for it. A process that was suspended meanwhile would send
      // a command that is out of date.
      writeTogether(socket, this.#options.fence ?? (() => undefined));
      client.connect({ ...this.#config((reason) => mismatch = reason), sock: socket });
    } catch (error) {
      fail(error);
    }
    if (signal.aborted) onAbort();
    return promise.finally(() => signal.removeEventListener("abort", onAbort));
  }

  #config(onMismatch: (reason: string) => void): ConnectConfig {
    const { host, user, authentication, hostKeys, readyTimeoutMs, presented: note } = this.#options;
    const secret = "password" in authentication
      ? { password: authentication.password, tryKeyboard: true }
      : authentication;
    return {
      host,
      port: this.#port,
      username: user,
      ...secret,
      authHandler: "password" in authentication ? ["password", "keyboard-interactive"] : ["publickey"],
      readyTimeout: readyTimeoutMs ?? 10_000,
      keepaliveInterval: 10_000,
      keepaliveCountMax: 3,
      algorithms: { ...algorithms, serverHostKey: preferPinned(hostKeys) },
      hostVerifier: (presented: Buffer) => {
        const isAccepted = hostKeys === "insecure" || isPinned(hostKeys, presented);
        if (isAccepted) note?.(fingerprint(presented), pinsOfOtherTypes(hostKeys, presented));
        else onMismatch(describeMismatch(hostKeys, presented));
        return isAccepted;
      },
    };
  }
}

class Ssh2Connection implements SshConnection {
  readonly closed: Promise<string>;
  readonly #client: Client;
  readonly #outputs = new Outputs();

  constructor(client: Client, failure: () => unknown) {
    this.#client = client;
    this.closed = new Promise((resolve) => {
      client.on("close", () => {
        const error = failure();
        resolve(
          error instanceof Error ? `the connection broke (${error.message})` : "the connection was closed",
        );
      });
    });
  }

  exec(command: Command, signal: AbortSignal): Promise<ExecEnd> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve({ state: "not-run", reason: "it was cancelled before" });
      try {
        this.#client.exec(command.text, {}, (error, channel) => {
          if (error === undefined) collect(channel, this.#outputs, signal, resolve);
          else resolve(neverSent(error) ?? { state: "torn", output: "" });
        });
      } catch (error) {
        // Thrown before anything is written: the socket is gone.
        resolve({ state: "not-run", reason: messageOf(error) });
      }
    });
  }

  close(): void {
    this.#client.destroy();
  }
}

/**
 * Whether an error of `exec` proves that the request was never sent: the channel was refused, or the connection ended
 * while it was being opened. Any other error proves nothing: "Unable to exec" also comes for a channel that closed
 * after the request.
 */
function neverSent(error: Error): ExecEnd | undefined {
  const refused = "reason" in error && error.reason !== undefined;
  const unopened = /^No response from server$|^Channel is not open$|^No free channels available$/.test(
    error.message,
  );
  return refused || unopened ? { state: "not-run", reason: error.message } : undefined;
}

/**
 * Makes a channel end only once. The library ends it again whenever one half is done, and makes an unused error each
 * time.
 */
function endOnce(channel: ClientChannel): void {
  const end: (...args: Parameters<ClientChannel["end"]>) => ClientChannel = channel.end.bind(channel);
  channel.end = (...args: unknown[]) =>
    channel.writableEnded ? channel : end(...args as Parameters<ClientChannel["end"]>);
}

function collect(
  channel: ClientChannel,
  outputs: Outputs,
  signal: AbortSignal,
  resolve: (end: ExecEnd) => void,
): void {
  endOnce(channel);
  const close = () => channel.close();
  const output = outputs.open(close);
  let exit: { readonly status: number | undefined } | undefined;
  channel.on("data", (chunk: Buffer) => output.add("printed", chunk));
  channel.stderr.on("data", (chunk: Buffer) => output.add("errors", chunk));
  channel.on("exit", (code: number | null) => exit = { status: code ?? undefined });
  channel.on("error", close);
  channel.on("close", () => {
    signal.removeEventListener("abort", close);
    const { printed, errors } = output.end();
    if (output.isOverlong) return resolve({ state: "torn", output: "", isOverlong: true });
    const text = errors === "" ? printed : `${printed}\n${errors}`;
    if (exit === undefined) return resolve({ state: "torn", output: text });
    resolve({ state: "ended", output: text, exitStatus: exit.status, errors });
  });
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
}
