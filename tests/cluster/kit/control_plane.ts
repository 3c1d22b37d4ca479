import { join } from "node:path";
import { freePort } from "../../support/parts.ts";
import { Api, type ApiAccess, kubeconfig } from "./api.ts";
import { writeAuditPolicy } from "./audit_log.ts";
import { Daemon } from "./daemon.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";
import { hostOutput } from "../../../tools/host_command.ts";

/** How long it may take until the API server serves, in seconds: 8 on an idle machine. */
const startSeconds = 120;

/** A user of the API server with a token, besides service accounts. */
interface User {
  readonly name: string;
  readonly groups: string;
  readonly token: string;
}

/** The namespace whose requests are audited: the one that the chart is rendered for. */
const auditedNamespace = "rds-csi";

/** etcd, API server, controller manager and scheduler on ports of 127.0.0.1, with their state in one folder. */
export class ControlPlane {
  readonly folder: string;
  readonly certificates: Certificates;
  readonly #tools: Tools;
  readonly #users: readonly User[];
  readonly #kubeletFlags: readonly string[];
  readonly #apiPort: number;
  readonly #etcdPort: number;
  #daemons: Daemon[] = [];
  #apiServer: Daemon | undefined;
  #api: Api | undefined;
  /** When the API server began to serve, each time, and when it ended, in milliseconds. */
  readonly #served: { fromMs: number; toMs: number }[] = [];

  private constructor(
    folder: string,
    tools: Tools,
    certificates: Certificates,
    users: readonly User[],
    kubeletFlags: readonly string[],
  ) {
    this.folder = folder;
    this.certificates = certificates;
    this.#tools = tools;
    this.#users = users;
    this.#kubeletFlags = kubeletFlags;
    this.#apiPort = freePort();
    this.#etcdPort = freePort();
  }

  /**
   * Prepares one for nodes of these names; `start` starts it.
   *
   * @param kubeletFlags of the API server: how it reaches kubelets
   */
  static async prepare(
    folder: string,
    tools: Tools,
    nodes: readonly string[],
    kubeletFlags: readonly string[] = ["--kubelet-preferred-address-types=InternalIP"],
  ): Promise<ControlPlane> {
    await Deno.mkdir(join(folder, "log"), { recursive: true });
    const users = [
      ["admin", "system:masters"],
      ["system:kube-controller-manager", ""],
      ["system:kube-scheduler", ""],
      ...nodes.map((node) => [`system:node:${node}`, "system:nodes"]),
    ].map(([name = "", groups = ""]) => ({ name, groups, token: crypto.randomUUID() }));
    const certificates = await makeCertificates(join(folder, "keys"));
    const lines = users.map(({ name, groups, token }) => `${token},${name},${name},"${groups}"\n`);
    await Deno.writeTextFile(join(certificates.folder, "tokens.csv"), lines.join(""), { mode: 0o600 });
    return new ControlPlane(folder, tools, certificates, users, kubeletFlags);
  }

  /** Starts everything, and waits until it serves. */
  async start(signal?: AbortSignal): Promise<void> {
    this.#run("etcd", etcdArguments(join(this.folder, "etcd"), this.#etcdPort, freePort()));
    await this.startApiServer(signal);
    // The usual rate limits, which are fine for a person, would only make the tests wait.
    const client = ["--kube-api-qps=200", "--kube-api-burst=400", "--leader-elect=false", "--secure-port=0"];
    this.#run("kube-controller-manager", [
      ...[`--kubeconfig=${await this.kubeconfig("system:kube-controller-manager")}`, ...client],
      ...["--controllers=*", "--use-service-account-credentials"],
      // How long a node may be silent before it counts as gone; usually 50 s.
      "--node-monitor-grace-period=20s",
      `--service-account-private-key-file=${this.certificates.serviceAccountKey}`,
      `--root-ca-file=${join(this.certificates.folder, "apiserver.crt")}`,
    ]);
    this.#run("kube-scheduler", [
      ...[`--kubeconfig=${await this.kubeconfig("system:kube-scheduler")}`, ...client],
    ]);
    await until(
      "the service account of the default namespace",
      () => this.api.find("/api/v1/namespaces/default/serviceaccounts/default"),
      { limitSeconds: startSeconds, ...(signal === undefined ? {} : { signal }) },
    );
  }

  /** The API with all permissions. */
  get api(): Api {
    if (this.#api === undefined) throw new Error("The API server has not been started");
    return this.#api;
  }

  /** Starts the API server, at first or again, and waits until it serves. */
  async startApiServer(signal?: AbortSignal): Promise<void> {
    const { certificates: keys } = this;
    const audit = await writeAuditPolicy(this.folder, auditedNamespace);
    this.#apiServer = Daemon.start("kube-apiserver", [
      this.#tools.program("kube-apiserver"),
      ...[`--etcd-servers=http://127.0.0.1:${this.#etcdPort}`],
      ...["--bind-address=127.0.0.1", `--secure-port=${this.#apiPort}`, `--cert-dir=${keys.folder}`],
      ...[`--token-auth-file=${join(keys.folder, "tokens.csv")}`, "--authorization-mode=Node,RBAC"],
      ...["--enable-admission-plugins=NodeRestriction", "--allow-privileged=true"],
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${keys.serviceAccountKey}`,
      `--service-account-signing-key-file=${keys.serviceAccountKey}`,
      ...["--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none"],
      ...this.#kubeletFlags,
      `--kubelet-client-certificate=${keys.kubeletClientCertificate}`,
      ...[`--kubelet-client-key=${keys.kubeletClientKey}`, ...audit],
    ], { folder: join(this.folder, "log") });
    await this.#apiServer.ready(startSeconds, () => this.#isReady(), signal);
    this.#served.push({ fromMs: Date.now(), toMs: Infinity });
  }

  /** Whether the API server served at that time, in milliseconds since 1970: before, it refuses valid requests. */
  servedAt(ms: number): boolean {
    return this.#served.some(({ fromMs, toMs }) => ms >= fromMs && ms <= toMs);
  }

  /** Sends SIGKILL to the API server; etcd keeps its state. */
  async killApiServer(): Promise<void> {
    await this.#apiServer?.kill();
    const last = this.#served.at(-1);
    if (last !== undefined) last.toMs = Math.min(last.toMs, Date.now());
  }

  /** A kubeconfig for a user of this name, as a file. */
  async kubeconfig(user: string): Promise<string> {
    const found = this.#users.find(({ name }) => name === user);
    if (found === undefined) throw new Error(`Cannot write a kubeconfig because nobody is called ${user}`);
    return await this.writeKubeconfig(user.replaceAll(":", "-"), found.token);
  }

  /** A kubeconfig for this token, as a file. */
  async writeKubeconfig(name: string, token: string): Promise<string> {
    const file = join(this.folder, `${name}.kubeconfig`);
    await Deno.writeTextFile(file, kubeconfig({ ...this.api.access, token }), { mode: 0o600 });
    return file;
  }

  /** Its daemons that have ended unexpectedly. */
  fallen(): readonly Daemon[] {
    return this.#daemons.filter((daemon) => !daemon.isRunning);
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    await Promise.all(this.#daemons.slice(1).map((daemon) => daemon.stop()));
    // A graceful end would wait for its clients.
    await this.killApiServer();
    await this.#daemons[0]?.stop();
    this.#api?.[Symbol.dispose]();
  }

  #run(name: string, args: readonly string[]): void {
    const text = [this.#tools.program(name), ...args];
    this.#daemons.push(Daemon.start(name, text, { folder: join(this.folder, "log") }));
  }

  /** At its first start the API server makes its own certificate. */
  async #isReady(): Promise<boolean> {
    this.#api ??= await this.#connect();
    return await this.#api?.isReady() ?? false;
  }

  async #connect(): Promise<Api | undefined> {
    try {
      const pem = await Deno.readTextFile(join(this.certificates.folder, "apiserver.crt"));
      const url = `https://127.0.0.1:${this.#apiPort}`;
      const access: ApiAccess = { url, caPem: pem, token: this.#users[0]!.token };
      return pem.trimEnd().endsWith("-----END CERTIFICATE-----") ? new Api(access) : undefined;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
  }
}

/** A store for one run: its data need not survive a power cut. */
function etcdArguments(folder: string, clientPort: number, peerPort: number): string[] {
  const [client, peer] = [`http://127.0.0.1:${clientPort}`, `http://127.0.0.1:${peerPort}`];
  return [
    ...["--name=test", `--data-dir=${folder}`, "--unsafe-no-fsync", "--log-level=warn"],
    ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
    ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`],
    `--initial-cluster=test=${peer}`,
  ];
}

/** Keys of a cluster, as paths. */
interface Certificates {
  readonly folder: string;
  /** Signs and checks the tokens of service accounts. */
  readonly serviceAccountKey: string;
  /** With it the API server authenticates to kubelets, for logs and for commands in a pod. */
  readonly kubeletClientAuthority: string;
  readonly kubeletClientCertificate: string;
  readonly kubeletClientKey: string;
}

/** Makes the keys that the programs do not make themselves; the API server makes its own serving certificate. */
async function makeCertificates(folder: string): Promise<Certificates> {
  await Deno.mkdir(folder, { mode: 0o700 });
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => hostOutput("openssl", args, { cwd: folder });
  const key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];
  const authority = ["-subj", "/CN=kubelet-clients", "-keyout", "authority.key", "-out", "authority.crt"];
  const client = ["-subj", "/O=system:masters/CN=api-server", "-keyout", "client.key", "-out", "client.csr"];
  await openssl("genrsa", "-out", "accounts.key", "2048");
  await openssl("req", "-x509", ...key, ...authority);
  await openssl("req", ...key.slice(0, 3), ...client);
  const signer = ["-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2"];
  await openssl("x509", "-req", "-in", "client.csr", ...signer, "-out", "client.crt");
  return {
    folder,
    serviceAccountKey: file("accounts.key"),
    kubeletClientAuthority: file("authority.crt"),
    kubeletClientCertificate: file("client.crt"),
    kubeletClientKey: file("client.key"),
  };
}
