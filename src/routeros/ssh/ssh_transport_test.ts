import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import ssh2 from "ssh2";
import type { AuthContext, Connection, ServerChannel } from "ssh2";
import { VolumeError } from "../../volume/errors.ts";
import { makeSshKeys } from "../../../tests/fakes/ssh_keys.ts";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import { command, ros } from "../console/command.ts";
import { fingerprint, parseHostKeys } from "./host_key.ts";
import { Ssh2Transport, type SshAuthentication } from "./ssh_transport.ts";
import { ConnectError, type ExecEnd } from "./transport.ts";

const hostKey = makeSshKeys();
const rsaHostKey = ssh2.utils.generateKeyPairSync("rsa", { bits: 2048 });
const userKey = makeSshKeys();
const otherKey = makeSshKeys("secret");

interface FakeServer {
  readonly port: number;
  readonly warnings: string[];
  readonly log: string[];
  transport(options?: {
    authentication?: SshAuthentication;
    hostKeys?: "insecure" | string;
    port?: number;
    readyTimeoutMs?: number;
    fence?: () => string | undefined;
    presented?: (hostKey: string, others: readonly string[]) => void;
  }): Ssh2Transport;
}

interface Behaviour {
  readonly hostKeys?: readonly string[];
  /** Accepts a login attempt; undefined when it has answered itself. */
  readonly accept?: (attempt: AuthContext) => boolean | undefined;
  /** Answers a command; the default echoes it. */
  readonly answer?: (text: string, channel: ServerChannel, connection: Connection) => void;
  /** Refuses the channel. */
  readonly refuse?: boolean;
  /** Called when the client requests a channel, before it gets one. */
  readonly asked?: () => void;
}

/** Starts an SSH server on the loopback address, passes it to the test and closes everything afterwards. */
async function withServer(behaviour: Behaviour, test: (server: FakeServer) => Promise<void>): Promise<void> {
  const log: string[] = [];
  const connections = new Set<Connection>();
  const server = new ssh2.Server({ hostKeys: [...behaviour.hostKeys ?? [hostKey.private]] }, (connection) => {
    connections.add(connection);
    connection.on("error", (error: Error) => log.push(`server: ${error.message}`));
    connection.on("close", () => connections.delete(connection));
    connection.on("authentication", (attempt) => {
      log.push(`auth ${attempt.method}`);
      const accepted = behaviour.accept === undefined ? true : behaviour.accept(attempt);
      if (accepted === true) attempt.accept();
      if (accepted === false) attempt.reject(["password", "publickey", "keyboard-interactive"]);
    });
    connection.on("session", (accept, reject) => {
      behaviour.asked?.();
      if (behaviour.refuse) return reject();
      accept().on("exec", (acceptExec, _reject, { command: text }) => {
        log.push(`exec ${text}`);
        const answer = behaviour.answer ?? ((text, channel) => {
          channel.write(`${text}\r\n`);
          channel.exit(0);
          channel.end();
        });
        answer(text, acceptExec(), connection);
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const warnings: string[] = [];
  const transport: FakeServer["transport"] = (options = {}) =>
    new Ssh2Transport({
      host: "127.0.0.1",
      port,
      user: "admin",
      authentication: { password: "pw" },
      warning: (message) => warnings.push(message),
      ...options,
      hostKeys: options.hostKeys === "insecure"
        ? "insecure"
        : parseHostKeys(options.hostKeys ?? hostKey.public, "127.0.0.1", port),
    });
  try {
    await test({ port, warnings, log, transport });
  } finally {
    for (const connection of connections) connection.end();
    const closed = once(server, "close");
    server.close();
    await closed;
  }
}

const never = new AbortController().signal;
const hello = command(ros`:put ${"hello"}`);

async function run(server: FakeServer, options: Parameters<FakeServer["transport"]>[0] = {}) {
  const connection = await server.transport(options).connect(never);
  try {
    return await connection.exec(hello, never);
  } finally {
    connection.close();
    await connection.closed;
  }
}

async function failure(promise: Promise<unknown>): Promise<ConnectError> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return error;
  }
  return assert.fail("it connected");
}

function serverTest(
  name: string,
  behaviour: Behaviour,
  test: (server: FakeServer) => Promise<void>,
): void {
  Deno.test(`Ssh2Transport ${name}`, () => withServer(behaviour, test));
}

const answers: readonly (readonly [string, Behaviour, Partial<ExecEnd>])[] = [
  [
    "runs a command and gives output, status and the end in order",
    {},
    { state: "ended", output: `:put "hello"\r\n`, exitStatus: 0, errors: "" },
  ],
  [
    "adds what came on stderr behind the rest",
    {
      answer: (_text, channel) => {
        channel.stderr.write("bad\r\n");
        channel.write("good\r\n");
        channel.exit(1);
        channel.end();
      },
    },
    { state: "ended", output: "good\r\n\nbad\r\n", exitStatus: 1, errors: "bad\r\n" },
  ],
  [
    "gives a channel without exit status as torn, with what had come",
    {
      answer: (_text, channel) => {
        channel.write("half");
        channel.close();
      },
    },
    { state: "torn", output: "half" },
  ],
  [
    "gives bytes that are no UTF-8 as U+FFFD, also where the output ends within a character",
    {
      answer: (_text, channel) => {
        channel.write(Buffer.of(0x61, 0xff, 0xfe, 0xc3, 0x22, 0xc3));
        channel.exit(0);
        channel.end();
      },
    },
    { state: "ended", output: 'a\ufffd\ufffd\ufffd"\ufffd', exitStatus: 0, errors: "" },
  ],
  ["gives a refused channel as not run", { refuse: true }, { state: "not-run" }],
];

for (const [name, behaviour, expected] of answers) {
  serverTest(name, behaviour, async (server) => {
    const end = await run(server, { fence: () => undefined });
    assert.deepEqual({ ...end, ...expected }, end);
    assert.deepEqual(server.warnings, []);
  });
}

serverTest("runs commands side by side, and transfers megabytes", {
  answer: (_text, channel) => {
    channel.write("x".repeat(3_000_000), () => {
      channel.exit(0);
      channel.end();
    });
  },
}, async (server) => {
  const connection = await server.transport().connect(never);
  try {
    const ends = await Promise.all(Array.from({ length: 8 }, () => connection.exec(hello, never)));
    assert.ok(ends.every((end) => end.state === "ended" && end.output.length === 3_000_000));
  } finally {
    connection.close();
  }
});

serverTest("gives an answer above 24 MiB as torn and overlong, and keeps nothing of it", {
  answer: (_text, channel) => {
    const mebibyte = Buffer.alloc(1 << 20, "x");
    let written = 0;
    // The library calls back when the client has taken what was written.
    const write = () => {
      if (!channel.writable) return;
      if (written++ < 70) return void channel.write(mebibyte, write);
      channel.exit(0);
      channel.end();
    };
    write();
  },
}, async (server) => {
  const end = await run(server);
  assert.deepEqual(end, { state: "torn", output: "", isOverlong: true });
});

serverTest("logs in with a key", {
  accept: (attempt) => attempt.method === "publickey",
}, async (server) => {
  assert.equal((await run(server, { authentication: { privateKey: userKey.private } })).state, "ended");
  assert.ok(server.log.every((line) => !line.startsWith("auth") || line === "auth publickey"));
});

Deno.test("Ssh2Transport answers keyboard-interactive prompts with the password", () => {
  const given: string[] = [];
  const accept = (attempt: AuthContext) => {
    if (attempt.method !== "keyboard-interactive") return false;
    attempt.prompt([{ prompt: "Password: ", echo: false }], (answers) => {
      given.push(...answers);
      attempt.accept();
    });
    return undefined;
  };
  return withServer({ accept }, async (server) => {
    assert.equal((await run(server)).state, "ended");
    assert.deepEqual(given, ["pw"]);
  });
});

serverTest("fails lastingly when the login is refused, without naming the secret", {
  accept: () => false,
}, async (server) => {
  const error = await failure(server.transport({ authentication: { password: "hunter2" } }).connect(never));
  assert.equal(error.lasting, true);
  assert.match(error.message, /refused the login/);
  assert.ok(!error.message.includes("hunter2"));
});

serverTest(
  "refuses another host key before it says who it is, and names both fingerprints",
  {},
  async (server) => {
    const error = await failure(server.transport({ hostKeys: userKey.public }).connect(never));
    assert.equal(error.lasting, true);
    for (const text of [hostKey.public, userKey.public]) {
      const blob = Buffer.from(text.split(" ")[1]!, "base64");
      assert.ok(error.message.includes(fingerprint(blob)), error.message);
    }
    assert.deepEqual(server.log.filter((line) => line.startsWith("auth")), []);
  },
);

serverTest("requests the pinned key from a router with several host keys", {
  hostKeys: [hostKey.private, rsaHostKey.private],
}, async (server) => {
  assert.equal((await run(server, { hostKeys: rsaHostKey.public })).state, "ended");
  assert.equal((await run(server, { hostKeys: hostKey.public })).state, "ended");
});

serverTest("notes the key that was presented, and the pinned ones of other types", {}, async (server) => {
  const noted: unknown[] = [];
  const presented = (...keys: unknown[]) => void noted.push(keys);
  await run(server, { hostKeys: `${hostKey.public}\n${rsaHostKey.public}`, presented });
  await run(server, { hostKeys: "insecure", presented });
  const [own, other] = [hostKey, rsaHostKey].map((key) =>
    fingerprint(parseHostKeys(key.public, "127.0.0.1", server.port)[0]!.blob)
  );
  assert.deepEqual(noted, [[own, [other]], [own, []]]);
});

serverTest("accepts any host key when insecure, and warns", {}, async (server) => {
  assert.equal((await run(server, { hostKeys: "insecure" })).state, "ended");
  assert.equal(server.warnings.length, 1);
  assert.match(server.warnings[0]!, /INSECURE/);
});

serverTest("reports a command as torn when the connection breaks while it runs", {
  answer: (_text, _channel, connection) => connection.end(),
}, async (server) => {
  const connection = await server.transport().connect(never);
  assert.deepEqual(await connection.exec(hello, never), { state: "torn", output: "" });
  assert.match(await connection.closed, /closed|broke/);
  assert.equal((await connection.exec(hello, never)).state, "not-run");
});

Deno.test("Ssh2Transport closes the channel of an abandoned command", () => {
  const closed = Promise.withResolvers<void>();
  return withServer(
    { answer: (_text, channel) => void channel.on("close", closed.resolve).resume() },
    async (server) => {
      const connection = await server.transport().connect(never);
      try {
        const controller = new AbortController();
        const end = connection.exec(hello, controller.signal);
        controller.abort();
        assert.deepEqual(await end, { state: "torn", output: "" });
        await closed.promise;
      } finally {
        connection.close();
      }
    },
  );
});

serverTest("names ECONNREFUSED and the permission that may be missing", {}, async (server) => {
  const free = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = free.addr.port;
  free.close();
  const error = await failure(server.transport({ port }).connect(never));
  assert.equal(error.lasting, false);
  assert.match(error.message, /ECONNREFUSED.*ALLOW_NET/);
});

Deno.test("Ssh2Transport gives up on a server that never answers", async () => {
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    await withServer({}, async (server) => {
      const slow = server.transport({ port: silent.addr.port, readyTimeoutMs: 50 });
      assert.match((await failure(slow.connect(never))).message, /did not answer in time/);
      const controller = new AbortController();
      const connecting = server.transport({ port: silent.addr.port }).connect(controller.signal);
      controller.abort();
      assert.match((await failure(connecting)).message, /aborted/);
    });
  } finally {
    silent.close();
  }
});

for (
  const [name, privateKey] of [
    ["garbage", "garbage"],
    ["a public key", userKey.public],
    ["an encrypted key without its passphrase", otherKey.private],
  ] as const
) {
  Deno.test(`Ssh2Transport throws invalid for ${name} as its private key, without showing it`, () => {
    const options = { host: "h", user: "u", hostKeys: "insecure", warning() {} } as const;
    assert.throws(
      () => new Ssh2Transport({ ...options, authentication: { privateKey } }),
      (error) => VolumeError.is(error, "invalid") && !error.message.includes(privateKey),
    );
  });
}

Deno.test("Ssh2Transport throws invalid without a pinned host key", () => {
  const options = { host: "h", user: "u", authentication: { password: "p" }, warning() {} };
  throwsWith(() => new Ssh2Transport({ ...options, hostKeys: [] }), "invalid");
});

Deno.test({
  name:
    "Ssh2Transport sends no command once the fence forbids it, though the router opens the channel for it",
  // The library leaves the cipher of a connection that ends during a read to the garbage collector.
  sanitizeResources: false,
  fn() {
    let reason: string | undefined;
    return withServer({ asked: () => reason = "another one leads" }, async (server) => {
      const connection = await server.transport({ fence: () => reason }).connect(never);
      const end = await connection.exec(hello, never);
      assert.notEqual(end.state, "ended");
      assert.match(await connection.closed, /another one leads/);
      assert.deepEqual(server.log.filter((line) => line.startsWith("exec")), []);
    });
  },
});
