import * as net from "node:net";
import { type ConnectionService, RouterConnection, type SessionState } from "./connection.ts";
import type { HostKey } from "./host_key.ts";
import { isScratchName } from "../assertions/ownership.ts";
import { type ServerConfig, ssh2 } from "./library.ts";
import { isFrom } from "./users.ts";

/**
 * The offered algorithms: aes-gcm and aes-ctr, which a router offers too; no chacha20 and no group exchange, which do
 * not work on this runtime.
 */
const algorithms = {
  kex: [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "diffie-hellman-group14-sha256",
  ],
  cipher: [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
  ],
  hmac: ["hmac-sha2-256", "hmac-sha2-512"],
  serverHostKey: ["rsa-sha2-512", "rsa-sha2-256", "ssh-ed25519"],
} satisfies ServerConfig["algorithms"];

interface Peer {
  readonly socket: net.Socket;
  readonly connection: RouterConnection;
}

/** The router's SSH service. */
export class SshService {
  readonly #service: ConnectionService;
  readonly #listener: net.Server;
  #ssh: InstanceType<typeof ssh2.Server>;
  #hostKey: HostKey;
  readonly #peers = new Map<string, Peer>();
  #sessions = 0;
  #refusing = false;

  constructor(service: ConnectionService, hostKey: HostKey) {
    this.#service = service;
    this.#hostKey = hostKey;
    this.#ssh = this.#makeProtocol(hostKey);
    this.#listener = net.createServer((socket) => this.#receive(socket));
  }

  /** Listens, and returns the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#listener.once("error", reject);
      this.#listener.listen(port, host, () => resolve((this.#listener.address() as net.AddressInfo).port));
    });
  }

  /** The present connections. */
  get sessions(): readonly SessionState[] {
    return [...this.#peers.values()].map((peer) => peer.connection.state);
  }

  /** Drops every connection; while `refusing`, new ones are dropped at once. */
  reset(refusing: boolean): void {
    this.#refusing = refusing;
    for (const { socket } of this.#peers.values()) drop(socket);
  }

  /** Accepts connections again. */
  resume(): void {
    this.#refusing = false;
  }

  get refusing(): boolean {
    return this.#refusing;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    this.reset(true);
    await closed;
  }

  /** The key by which clients recognise the router. */
  get hostKey(): HostKey {
    return this.#hostKey;
  }

  /** Shows new connections another host key, like a router that was reset or replaced. */
  changeHostKey(hostKey: HostKey): void {
    this.#hostKey = hostKey;
    this.#ssh = this.#makeProtocol(hostKey);
  }

  #makeProtocol({ privatePem }: HostKey): InstanceType<typeof ssh2.Server> {
    return new ssh2.Server(
      { hostKeys: [privatePem], ident: "ROSSSH", algorithms },
      (client, info) => this.#peers.get(`${info.ip}:${info.port}`)?.connection.serve(client),
    );
  }

  #receive(socket: net.Socket): void {
    const key = `${socket.remoteAddress}:${socket.remotePort}`;
    // ssh2 reports a lost connection itself; a socket error must not end the process.
    socket.on("error", () => socket.destroy());
    if (this.#refusing) return drop(socket);
    if (!isFrom(socket.remoteAddress ?? "", this.#service.router.sshOrigins)) return drop(socket);
    const session = ++this.#sessions;
    const { maxSessions } = this.#service.router.behaviours;
    if (this.#peers.size >= maxSessions) {
      const sentence = `Connection ${session} comes while ${maxSessions} are open.`;
      const probed = this.#service.router.disks.list().some(({ slot }) => isScratchName(slot));
      if (!probed) this.#service.violations.report(session, "", "session-limit", sentence);
      return drop(socket);
    }
    socket.setNoDelay(true);
    const connection = new RouterConnection(this.#service, session, key, () => drop(socket));
    this.#peers.set(key, { socket, connection });
    socket.once("close", () => this.#peers.delete(key));
    this.#ssh.injectSocket(socket);
  }
}

function drop(socket: net.Socket): void {
  socket.destroy();
}
