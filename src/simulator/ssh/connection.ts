import { Buffer } from "node:buffer";
import type { Faults } from "../faults.ts";
import { lintExec } from "../assertions/lint.ts";
import { type ExecService, serveExec } from "./exec.ts";
import type { AuthContext, Connection, ServerChannel, SshSession } from "./library.ts";
import { authenticate, type User, type Users } from "./users.ts";

/** The services of a connection. */
export interface ConnectionService extends ExecService {
  readonly faults: Faults;
  readonly users: Users;
  /** Waits as long as setting up a connection takes. */
  handshake(): Promise<void>;
}

/** A connection in `/state`. */
export interface SessionState {
  readonly session: number;
  /** "" until a user has logged in. */
  readonly user: string;
  readonly address: string;
  /** Channels open now. */
  readonly channels: number;
}

/** Serves one SSH connection: login, exec channels, and refusals of everything else. */
export class RouterConnection {
  readonly #service: ConnectionService;
  readonly #session: number;
  readonly #address: string;
  readonly #drop: () => void;
  #user: User | undefined;
  #channels = 0;
  /** Whether a fault refuses every login of this connection. */
  #refused = false;

  /** @param drop drops the TCP connection. */
  constructor(service: ConnectionService, session: number, address: string, drop: () => void) {
    this.#service = service;
    this.#session = session;
    this.#address = address;
    this.#drop = drop;
  }

  get state(): SessionState {
    return {
      session: this.#session,
      user: this.#user?.name ?? "",
      address: this.#address,
      channels: this.#channels,
    };
  }

  /** Takes a connection whose key exchange is under way. Global requests, including keepalive, are refused. */
  serve(connection: Connection): void {
    connection.on("error", () => this.#drop());
    connection.on("authentication", (attempt) => {
      // It fails only when the simulator closes meanwhile; then there is no client to answer.
      this.#authenticate(attempt).catch(() => this.#drop());
    });
    connection.on("session", (accept, refuse) => {
      if (this.#service.faults.refusesChannel()) return refuse();
      this.#serveSession(accept());
    });
    connection.on("request", (_accept, refuse) => refuse?.());
  }

  async #authenticate(attempt: AuthContext): Promise<void> {
    const user = authenticate(attempt, this.#service.users.list(), this.#address.replace(/:\d+$/, ""));
    // A query about a public key proves nothing yet.
    const proven = attempt.method !== "publickey" || attempt.signature !== undefined;
    if (user !== undefined && proven && !this.#refused) {
      this.#refused = this.#service.faults.refusesLogin(user.name);
    }
    if (user === undefined || this.#refused) return attempt.reject(["publickey", "password"]);
    if (proven) await this.#service.handshake();
    if (proven) this.#user = user;
    attempt.accept();
  }

  #serveSession(session: SshSession): void {
    this.#channels++;
    session.on("close", () => this.#channels--);
    session.on("exec", (accept, refuse, { command }) => {
      if (Buffer.byteLength(command) > this.#service.router.behaviours.maxCommand) {
        return refuseLong({ session: this.#session, command, refuse }, this.#service);
      }
      const fault = this.#service.faults.strike(command);
      if (fault?.action === "refuse-channel") {
        this.#service.journal.open(this.#session, command)("fault refuse-channel");
        return refuse();
      }
      const channel = accept();
      serveExec({
        session: this.#session,
        // The group's policies may have changed since the login; a user who was removed meanwhile may do nothing.
        policies: this.#service.users.find(this.#user?.name ?? "") ?? { mayRead: false, mayWrite: false },
        command,
        fault,
        channel: {
          write: (stream, bytes) => writeTo(channel, stream, bytes as Buffer),
          finish: (status) => finish(channel, status),
          drop: this.#drop,
        },
      }, this.#service);
    });
    // Only exec is served: no terminal, no sftp. A client without a command gets a hint how to send one.
    session.on("pty", (accept) => accept());
    session.on("shell", (accept) => {
      const channel = accept();
      channel.write("The simulated router has no terminal. Give it a command: ssh … '/disk/print'\r\n");
      finish(channel, 1);
    });
    session.on("sftp", (_accept, refuse) => refuse());
  }
}

/** Refuses a request that does not fit into the router's buffer. */
function refuseLong(
  { session, command, refuse }: { session: number; command: string; refuse: () => void },
  { journal, violations }: ConnectionService,
): void {
  journal.open(session, command)("refused: too long");
  for (const { rule, sentence } of lintExec(command, 0)) violations.report(session, command, rule, sentence);
  refuse();
}

/** Writes, unless the client has gone meanwhile. */
function writeTo(channel: ServerChannel, stream: "stdout" | "stderr", bytes: Buffer): void {
  if (bytes.length === 0 || !channel.writable) return;
  if (stream === "stderr") channel.stderr.write(bytes);
  else channel.write(bytes);
}

function finish(channel: ServerChannel, status: number | undefined): void {
  if (!channel.writable) return;
  if (status !== undefined) channel.exit(status);
  channel.end();
}
