import assert from "node:assert/strict";
import type { ControllerRpcs } from "../src/csi/generated/csi.ts";
import { METHOD_MESSAGES, SECRET_FIELDS } from "../src/csi/generated/secrets.ts";
import { dial } from "../src/csi/server/client.ts";
import { loadCsi } from "../src/csi/server/proto.ts";
import { systemClock } from "../src/host/clock.ts";
import { systemRandom } from "../src/host/random.ts";
import { type Simulator, startSimulator } from "../src/simulator/simulator.ts";
import { makeSshKeys, routerHostKey } from "./fakes/ssh_keys.ts";
import { mount } from "./support/controller_calls.ts";
import { findLeaks, keySecret, type Secret, type Transcript } from "./support/leaks.ts";
import { freePort, type Part, startPart } from "./support/parts.ts";
import { eventually } from "./support/eventually.ts";

const password = 'pass "Wörd"/+$%& mit <Zeichen>';
const wrongPassword = "a-wrong-one-that-is-secret-as-well";
const marker = "value of a field marked csi_secret";

const secrets = (key: string): readonly Secret[] => [
  keySecret(key),
  { name: "the password", texts: [password] },
  { name: "a password that was refused", texts: [wrongPassword] },
  { name: "a marked field", texts: [marker] },
];

/** How an answer begins that a method is not served. */
const unimplemented = "12 ";

/** The methods with a marked field that controllers and nodes have, in an order in which they can succeed. */
const order = [
  ...["CreateVolume", "ValidateVolumeCapabilities", "ControllerPublishVolume", "NodeStageVolume"],
  ...["NodePublishVolume", "ControllerExpandVolume", "NodeExpandVolume", "NodeGetStorageHealth"],
  ...["ControllerGetVolumeHealth", "ControllerListVolumeHealth", "ControllerModifyVolume", "CreateSnapshot"],
  ...["GetSnapshot", "ListSnapshots", "DeleteSnapshot"],
  ...["NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume"],
];

/** A run of everything, and what it printed. */
class Run {
  readonly transcript: (readonly [where: string, text: string])[] = [];
  readonly answered = new Map<string, string>();
  readonly #folder: string;
  readonly #simulator: Simulator;

  constructor(folder: string, simulator: Simulator) {
    this.#folder = folder;
    this.#simulator = simulator;
  }

  /** Flags with which a command reaches the router, as whom. */
  reach(as: "key" | "password" | "wrong-password"): string[] {
    return [
      ...["--rds-address", "127.0.0.1", "--rds-port", String(this.#simulator.sshPort)],
      ...["--rds-host-key", this.#simulator.hostKeyPublic, "--cluster-id", "a test's cluster"],
      ...[as === "key" ? "--rds-key" : "--rds-password-file", `${this.#folder}/${as}`],
    ];
  }

  /** Runs a command to its end. */
  async command(name: string, ...args: string[]): Promise<number> {
    const part = startPart("sources", name, this.#folder, args);
    const code = await part.ended;
    this.transcript.push([`rds-csi ${name} ${args.join(" ")}`, await part.printed()]);
    return code;
  }

  /** Serves, has `use` call it, and keeps what was printed, served and answered. */
  async serve(
    as: "key" | "password" | "wrong-password",
    use: (calls: Calls) => Promise<void>,
  ): Promise<void> {
    const [port, metrics] = [freePort(), freePort()];
    const part = startPart("sources", "serve", this.#folder, [
      ...["--mode", "all", "--node-id", "node-1", "--endpoint", `tcp://127.0.0.1:${port}`],
      ...["--log-level", "debug", "--log-format", as === "key" ? "text" : "json"],
      ...["--metrics-address", `127.0.0.1:${metrics}`, "--unexport-grace", "0s"],
      ...["--connector", "loop", "--loop-backing", `${this.#folder}/router`],
      ...["--state-dir", `${this.#folder}/state-${as}`, ...this.reach(as)],
    ]);
    const clients = dial(loadCsi(), `tcp://127.0.0.1:${port}`, systemClock);
    try {
      await part.ready(() => clients.identity.call("GetPluginInfo", {}).then(() => true, () => false));
      await use(new Calls(this, clients, this.#folder));
      for (const path of ["", "metrics", "status.json", "healthz", "readyz"]) {
        const response = await fetch(`http://127.0.0.1:${metrics}/${path}`);
        this.transcript.push([`/${path} by ${as}`, await response.text()]);
      }
    } finally {
      clients.close();
      const problems = await part.stop();
      this.transcript.push([`rds-csi serve by ${as}`, await part.printed()]);
      assert.deepEqual(problems, []);
    }
  }
}

type Clients = ReturnType<typeof dial>;

/** Calls with something secret in every marked field. */
class Calls {
  readonly #run: Run;
  readonly #clients: Clients;
  readonly #folder: string;

  constructor(run: Run, clients: Clients, folder: string) {
    this.#run = run;
    this.#clients = clients;
    this.#folder = folder;
  }

  /** All of them, for a volume and a snapshot of their own. */
  async all(): Promise<void> {
    const volumeId = await this.#volumeId();
    const known: Record<string, unknown> = {
      ...{ volumeId, name: `pvc-${crypto.randomUUID()}`, nodeId: "node-1", sourceVolumeId: volumeId },
      ...{
        volumeCapabilities: [mount],
        volumeCapability: mount,
        capacityRange: { requiredBytes: String(32n << 20n) },
      },
      ...{
        stagingTargetPath: `${this.#folder}/staging`,
        targetPath: `${this.#folder}/target`,
        volumePath: `${this.#folder}/target`,
      },
    };
    await this.#encrypted(known);
    for (const method of order) {
      const answer = await this.call(method, known) as Record<string, unknown> | undefined;
      if (method === "ControllerPublishVolume") known["publishContext"] = answer?.["publishContext"];
      if (method === "CreateSnapshot") {
        known["snapshotId"] = (answer?.["snapshot"] as { snapshotId: string } | undefined)?.snapshotId;
      }
    }
  }

  /** A stage of an encrypted volume, which uses its passphrase: here until it is refused for want of a mapping. */
  async #encrypted(known: Readonly<Record<string, unknown>>): Promise<void> {
    const name = `pvc-${crypto.randomUUID()}`;
    const made = await this.call("CreateVolume", { ...known, name, parameters: { encrypted: "true" } });
    const { volumeId, volumeContext } = (made as { volume?: Record<string, unknown> } | undefined)?.volume ??
      {};
    const volume = { ...known, volumeId, volumeContext };
    const published = await this.call("ControllerPublishVolume", volume) as
      | Record<string, unknown>
      | undefined;
    await this.call("NodeStageVolume", { ...volume, publishContext: published?.["publishContext"] });
    for (const method of ["NodeUnstageVolume", "ControllerUnpublishVolume", "DeleteVolume"]) {
      await this.call(method, volume);
    }
  }

  /** One call; undefined when it was refused. */
  async call(method: string, known: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { node, controller } = this.#clients;
    // Which service a method belongs to is known only at run time.
    const client = (method.startsWith("Node") ? node : controller) as Clients["controller"];
    try {
      const answer = await client.call(method as keyof ControllerRpcs, {
        ...known,
        secrets: {
          password: marker,
          encryptionPassphrase: marker,
          encryptionPassphraseNew: `${marker}: new`,
        },
      });
      this.#run.answered.set(method, "OK");
      this.#run.transcript.push([`${method} answers`, JSON.stringify(answer)]);
      return answer;
    } catch (error) {
      const { code, details } = error as { readonly code: number; readonly details: string };
      if (this.#run.answered.get(method) !== "OK") this.#run.answered.set(method, `${code} ${details}`);
      this.#run.transcript.push([`${method} is refused`, details]);
      return undefined;
    }
  }

  async #volumeId(): Promise<string> {
    const { volume } = await this.#clients.controller.call("CreateVolume", {
      name: `pvc-${crypto.randomUUID()}`,
      capacityRange: { requiredBytes: String(16n << 20n) },
      volumeCapabilities: [mount],
      secrets: { password: marker },
    });
    return volume!.volumeId;
  }
}

async function wholeRun(run: Run): Promise<void> {
  await run.serve("key", (calls) => calls.all());
  await run.serve("password", async (calls) => {
    await calls.all();
    for (const method of order) await calls.call(method, { volumeId: "../etc", name: "", nodeId: "" });
  });
  await run.serve("wrong-password", async (calls) => {
    for (const method of order) {
      await calls.call(method, { volumeId: "pvc-1", name: "one", nodeId: "node-1" });
    }
  });
  assert.equal(await run.command("audit", "--json", ...run.reach("password")), 0);
  await run.command("doctor", ...run.reach("key"));
  await run.command("doctor", "--json", ...run.reach("password"));
  assert.equal(await run.command("doctor", ...run.reach("wrong-password")), 1);
  assert.equal(await run.command("audit", ...run.reach("wrong-password")), 1);
  await run.command("describe", "--json", "--node-id", "node-1");
  // Given where the name of its file belongs.
  assert.equal(await run.command("audit", ...run.reach("key").slice(0, -1), password), 2);
  assert.equal(await run.command("audit", ...run.reach("key"), "--rds-password", wrongPassword), 2);
  assert.equal(await run.command("demo", "--data", "1", "--timing-scale", "0", "--verbose"), 0);
}

Deno.test("nothing secret is printed, served or answered, whatever is done and whatever fails", async () => {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  const key = makeSshKeys();
  const simulator = await startSimulator({
    clock: systemClock,
    random: systemRandom,
    timingScale: 0,
    hostKey: routerHostKey.privatePem,
    exporter: "loop",
    backingDirectory: `${folder}/router`,
    users: [{ name: "rds-csi", password, authorizedKeys: [key.public] }],
  });
  const run = new Run(folder, simulator);
  try {
    await Deno.writeTextFile(`${folder}/key`, key.private);
    await Deno.writeTextFile(`${folder}/password`, `${password}\n`);
    await Deno.writeTextFile(`${folder}/wrong-password`, wrongPassword);
    await wholeRun(run);
  } finally {
    await simulator.close();
    await Deno.remove(folder, { recursive: true });
  }
  const { transcript } = run;
  assert.deepEqual(findLeaks(transcript, secrets(key.private)), []);
  assertWhole(run);
  // What finds nothing has to be able to.
  for (const [where, text] of transcript) {
    const leaking: Transcript = [[where, `${text}${marker}`]];
    assert.equal(findLeaks(leaking, secrets(key.private)).length > 0, true, where);
  }
});

/** That nothing was found counts only if everything was done. */
function assertWhole({ transcript, answered }: Run): void {
  const marked = [...METHOD_MESSAGES].filter(([path, { request }]) =>
    /^\/csi\.v1\.(?:Controller|Node)\//.test(path) && SECRET_FIELDS.has(request)
  ).map(([path]) => path.slice(path.lastIndexOf("/") + 1));
  assert.deepEqual(marked.filter((method) => !answered.has(method)), []);
  // A node that may not mount refuses, and tells of that nothing secret either.
  const isRoot = Deno.uid() === 0;
  const expected = marked.filter((name) =>
    name !== "ControllerModifyVolume" && (isRoot || !name.startsWith("Node"))
  );
  for (const method of expected) assert.equal(answered.get(method), "OK", method);
  const printed = (where: string) => transcript.find(([name]) => name === where)![1];
  const log = printed("rds-csi serve by password");
  const served = order.filter((method) => !answered.get(method)!.startsWith(unimplemented));
  assert.ok(served.length >= order.length - 1, "only ControllerModifyVolume is not served");
  for (const method of served) assert.match(log, new RegExp(`"message":"request".*${method}`), method);
  assert.match(log, /"secrets":"\[redacted\]"/);
  assert.match(
    printed("rds-csi serve by key"),
    / level=debug .* msg="router command" .*requestId=[0-9a-f]{8}/,
  );
  assert.match(printed("/ by wrong-password"), /it refused the login/);
}

Deno.test("a secret is found however it is spelled, and wherever it lies", () => {
  const all = secrets(makeSshKeys().private);
  const [key, one] = all as [Secret, Secret];
  const secret = one.texts[0]!;
  const bytes = new TextEncoder().encode(secret);
  const leaks = [
    secret,
    secret.toUpperCase(),
    JSON.stringify({ a: secret }),
    JSON.stringify({ log: JSON.stringify({ a: secret }) }),
    `https://x/?a=${encodeURIComponent(secret)}`,
    new URLSearchParams({ a: secret }).toString(),
    btoa(String.fromCharCode(...bytes)),
    new TextEncoder().encode(`user:${secret}!`).toBase64(),
    new TextEncoder().encode(`users:${secret}`).toBase64(),
    bytes.toHex(),
    String(Array.from(bytes)),
    Deno.inspect({ a: secret }, { strAbbreviateSize: Infinity }).replaceAll("'", '"').replaceAll("\\'", "'"),
    ...key.texts.map((line) => `{"error":"cannot parse ${line}"}`),
  ];
  for (const leak of leaks) assert.ok(findLeaks([["a log", `x ${leak} y`]], all).length > 0, leak);
  assert.deepEqual(findLeaks([["a log", "the password-file and the key are not told"]], all), []);
});

Deno.test("a driver's log shows more while it runs, and less again, as a signal says", async () => {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-test-" });
  const address = `tcp://127.0.0.1:${freePort()}`;
  const part: Part = startPart("sources", "serve", folder, [
    ...["--mode", "node", "--node-id", "node-1", "--endpoint", address, "--metrics-address", ""],
    ...["--connector", "loop", "--loop-backing", `${folder}/router`, "--state-dir", `${folder}/state`],
    ...["--log-format", "text"],
  ]);
  const clients = dial(loadCsi(), address, systemClock);
  const requests = async () => {
    const before = (await part.printed()).match(/ msg=request /g)?.length ?? 0;
    await clients.node.call("NodeGetInfo", {});
    return ((await part.printed()).match(/ msg=request /g)?.length ?? 0) - before;
  };
  const reported = (level: string) =>
    eventually(async () =>
      (await part.printed()).includes(`msg="the log level was changed" signal=SIGUSR2 logged=${level}`)
    );
  try {
    await part.ready(() => clients.identity.call("GetPluginInfo", {}).then(() => true, () => false));
    assert.equal(await requests(), 0);
    part.signal("SIGUSR2");
    await reported("debug");
    assert.equal(await requests(), 1);
    part.signal("SIGUSR2");
    await reported("info");
    assert.equal(await requests(), 0);
  } finally {
    clients.close();
    const problems = await part.stop();
    await Deno.remove(folder, { recursive: true });
    assert.deepEqual(problems, []);
  }
});
