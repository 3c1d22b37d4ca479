// Every value of every behaviour, shown by the bytes that a client receives.
import assert from "node:assert/strict";
import { control } from "../../../tests/support/control_port.ts";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { connectSubsystem } from "../../nvme/host_connection.ts";
import { isRefusedCommand } from "../../nvme/refusal.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { type Behaviours, parseBehaviours } from "../behaviours.ts";
import type { Simulator } from "../simulator.ts";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";

/** A simulator with the behaviour, its base path, and a client of it. */
interface Bench {
  readonly simulator: Simulator;
  readonly clock: FakeClock;
  readonly client: SshClient;
  /** Returns what a command prints on stdout. */
  say(command: string): Promise<string>;
}

/** The texts that choose a value; numbers are shown by examples. */
type Choices<Value> = Value extends boolean ? "yes" | "no" : Value extends number ? string : Value;

interface Demonstration<Value> {
  readonly ask: (bench: Bench) => Promise<string>;
  readonly shows: Readonly<Record<Choices<Value> & string, string>>;
}

/** Runs commands one after the other, and returns what the last one prints. */
function says(...commands: readonly string[]) {
  return async ({ say }: Bench) => {
    let last = "";
    for (const command of commands) last = await say(command);
    return last;
  };
}

const folder = "storage-pool/metal-csi";
const sizes = jsonCommand('/disk print as-value proplist=size,file-size where slot~"^b"');
const removeDisk = `/disk remove "a"`;
const makeOther = addCommand("b").replace("/b.img", "/a.img").replace("1073741824", "2147483648");
const seeSubvolumes = jsonCommand("/disk/btrfs/subvolume/print as-value proplist=fullname where !default");
const addVolume = '/disk/btrfs/subvolume/add fs="storage-pool-fs" name="vol"';
const copyAndRead = async ({ simulator, client, clock }: Bench) => {
  const answer = client.exec(`/file copy "${folder}/a.img" name="${folder}/b.img"; :put "copied"`);
  while (clock.waiting === 0) await client.exec(':put "meanwhile"');
  await client.exec(':put "and once more, so that an answer would be here by now"');
  const isWhole = () => {
    const copy = simulator.model.files.find(`${folder}/b.img`);
    return copy !== undefined && !simulator.model.files.isPartial(copy);
  };
  const early = await Promise.race([
    answer.then(({ stdout }) => stdout),
    client.exec(':put "not yet"').then(() => ""),
  ]);
  const before = isWhole();
  await clock.advance(1000);
  return `${JSON.stringify(early)} ${before} ${JSON.stringify((await answer).stdout)} ${isWhole()}`;
};

const demonstrations: { readonly [Name in keyof Behaviours]: Demonstration<Behaviours[Name]> } = {
  maxSlot: {
    ask: says(addCommand("x".repeat(33))),
    shows: { 32: "failure: slot name longer than 32 characters\r\n", unlimited: "" },
  },
  maxComment: {
    ask: says(addCommand("b", 'comment="abcdef"'), ':put [/disk get "b" comment]'),
    shows: { 4: "abcd\r\n", 255: "abcdef\r\n" },
  },
  maxNqn: {
    ask: says(
      addCommand("b", 'nvme-tcp-server-nqn="nqn.abc" nvme-tcp-export="yes"'),
      ':put [/disk get "b" nvme-tcp-server-nqn]',
    ),
    shows: { 5: "nqn.a\r\n", 223: "nqn.abc\r\n" },
  },
  maxPut: { ask: says(':put "abcdef"'), shows: { 3: "abc\r\n", unlimited: "abcdef\r\n" } },
  maxSessions: {
    async ask({ simulator }) {
      try {
        using second = await SshClient.connect(simulator);
        return (await second.exec(':put "in"')).stdout;
      } catch (error) {
        return error instanceof Error ? "refused" : String(error);
      }
    },
    shows: { 1: "refused", 2: "in\r\n" },
  },
  maxCommand: {
    ask: ({ client }) =>
      client.exec(`:put "${"é".repeat(20)}"`).then(({ stdout }) => stdout, (error: Error) => error.message),
    shows: { 46: "Unable to exec", 47: `${"é".repeat(20)}\r\n`, unlimited: `${"é".repeat(20)}\r\n` },
  },
  interleave: {
    async ask({ simulator, clock, say }) {
      await timeless(clock, say('/disk set "a" comment="old"'));
      const found = '[/disk find where slot="a" and comment="old"]';
      const taking = `:put [:len ${found}]; /disk set ${found} comment="new"`;
      using other = await SshClient.connect(simulator);
      const both = Promise.all([say(taking), other.exec(taking).then(({ stdout }) => stdout)]);
      // Neither goes on before both have begun.
      while (simulator.model.behaviours.interleave && clock.waiting < 2) await tick();
      return (await timeless(clock, both)).toSorted().join("");
    },
    shows: { yes: "1\r\n1\r\n", no: "0\r\n1\r\n" },
  },
  emptyFind: {
    ask: says('/disk remove [find where slot="x"]; :put "end"'),
    shows: {
      "silent": "end\r\n",
      "item-id-error": "expected item id (line 1 column 14)\r\n",
    },
  },
  duplicateSlot: {
    ask: says(
      `${addCommand("a").replace("/a.img", "/b.img")}; ${addCommand("a").replace("/a.img", "/c.img")}; ` +
        jsonCommand('/disk print as-value proplist=slot where type="file"'),
    ),
    shows: {
      refused: "failure: already have such slot\r\n",
      renamed: '[{".id":"*4","slot":"a"},{".id":"*5","slot":"a-1"},{".id":"*6","slot":"a-2"}]\r\n',
    },
  },
  output: {
    ask: async ({ client, say }) =>
      JSON.stringify(await client.exec(':put "x"; /disk remove "nobody"')) +
      await say(jsonCommand('/disk print as-value proplist=size,file-size,mount-filesystem where slot="a"')),
    shows: {
      plain: '{"stdout":"x\\r\\nno such item\\r\\n","stderr":"","status":0}' +
        '[{".id":"*4","file-size":1073741824,"mount-filesystem":false,"size":1073741824}]\r\n',
      hostile:
        '{"stdout":"amber OK\\nx\\n","stderr":"lorry seven amber OK (/disk/remove; line 1)\\n","status":1}' +
        "[] lorry seven\n" +
        '[{".id":"*4","file-size":"1024.0MiB","mount-filesystem":"no","size":"1073741824"}]\n',
    },
  },
  grow: {
    async ask({ simulator, say }) {
      await say('/disk set "a" nvme-tcp-export="yes"; /disk set "a" file-size="2147483648"');
      const seen = () => simulator.model.disks.findBySlot("a")?.attachedBytes;
      const reported = await say(':put [/disk get "a" size]');
      const before = seen();
      await say('/disk set "a" nvme-tcp-export="no"; /disk set "a" nvme-tcp-export="yes"');
      return `${reported.trim()} ${before} ${seen()}`;
    },
    shows: {
      "live": "2147483648 2147483648 2147483648",
      "after-toggle": "2147483648 1073741824 2147483648",
      "never": "1073741824 1073741824 1073741824",
    },
  },
  identity: {
    async ask({ simulator, say }) {
      const uuid = () => {
        const [nqn = ""] = simulator.model.exports.list();
        return simulator.model.exports.accessOf(nqn)?.identity.uuid;
      };
      await say('/disk set "a" nvme-tcp-export="yes"');
      const before = uuid();
      await say('/disk set "a" nvme-tcp-export="no"; /disk set "a" nvme-tcp-export="yes"');
      return before === uuid() ? "the same" : "another one";
    },
    shows: { kept: "the same", "new-per-export": "another one" },
  },
  bootIdentity: {
    async ask({ simulator, clock, say }) {
      const uuid = () => {
        const [nqn = ""] = simulator.model.exports.list();
        return simulator.model.exports.accessOf(nqn)?.identity.uuid;
      };
      await say('/disk set "a" nvme-tcp-export="yes"');
      const before = uuid();
      await control(simulator, "POST /reboot", { downMs: 1000 });
      await clock.advance(1000);
      return before === uuid() ? "the same" : `another one: ${typeof uuid()}`;
    },
    shows: { kept: "the same", new: "another one: string" },
  },
  sideEffects: {
    async ask({ simulator, say }) {
      await say('/disk set "a" nvme-tcp-export="yes"; /disk set "a" comment="changed"');
      const [nqn = ""] = simulator.model.exports.list();
      const ends = () => String(simulator.model.exports.generationOf(nqn));
      const own = ends();
      await say(addCommand("b"));
      return `${own} ${ends()}`;
    },
    shows: { "harmless": "0 0", "ends-sessions": "1 2" },
  },
  unexport: {
    async ask({ simulator, clock, say }) {
      const [port, nqn] = [simulator.nvmePort!, "nqn.2014-08.com.example:a"];
      const on = `nvme-tcp-export="yes" nvme-tcp-server-port="${port}" nvme-tcp-server-nqn="${nqn}"`;
      await say(`/disk set "a" ${on}`);
      const hostNqn = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001";
      const where = { address: "127.0.0.1", port, nqn, hostNqn, hostId: hostNqn.slice(-36) };
      const context = { requestId: "t", signal: new AbortController().signal };
      await using host = await connectSubsystem(where, context);
      await say('/disk set "a" nvme-tcp-export="no"');
      const read = () =>
        host.read(0n, 1, context).then(
          () => "is read",
          (error) => isRefusedCommand(error) ? "refused" : "cut off",
        );
      const before = await read();
      await clock.advance(500);
      return `${before}, ${await read()}`;
    },
    shows: {
      "kills": "cut off, cut off",
      "lingers 500": "is read, cut off",
      "refuses-commands": "refused, refused",
    },
  },
  disksLate: {
    async ask({ simulator, clock }) {
      await control(simulator, "POST /reboot");
      const count = () => simulator.model.disks.list().length;
      await clock.advance(0);
      const before = count();
      await clock.advance(5000);
      return `${before} ${count()}`;
    },
    shows: { 0: "4 4", 5000: "3 4" },
  },
  allocation: {
    async ask({ simulator, say }) {
      simulator.model.backing.pretendWritten?.(`${folder}/a.img`, 1000n);
      const free = ':put [/disk get "storage-pool" free]';
      return await say(free) + await say(`/file copy "${folder}/a.img" name="${folder}/b.img"; ${free}`);
    },
    shows: {
      sparse: "7301927046168\r\n7301927046168\r\n",
      full: "7300853305344\r\n7299779563520\r\n",
    },
  },
  adopt: {
    ask: says(removeDisk, `${addCommand("a")}; :put "added"`),
    shows: { kept: "added\r\n", refused: `failure: file ${folder}/a.img already exists\r\n` },
  },
  otherSize: {
    ask: says(removeDisk, `${makeOther}; ${sizes}; :put [/file get "${folder}/a.img" size]`),
    shows: {
      refused: `failure: file ${folder}/a.img exists with other size\r\n`,
      kept: '[{".id":"*5","file-size":1073741824,"size":1073741824}]\r\n1073741824\r\n',
      resized: '[{".id":"*5","file-size":2147483648,"size":2147483648}]\r\n2147483648\r\n',
    },
  },
  directoryRemoval: {
    ask: says(
      '/file add name="storage-pool/d" type=directory; /file add name="storage-pool/d/f" type=file; ' +
        '/file remove [find where name="storage-pool/d"]; :put [:len [/file find where name~"^storage-pool/d"]]',
    ),
    shows: { "recursive": "0\r\n", "must-be-empty": "failure: directory storage-pool/d is not empty\r\n" },
  },
  copyReturns: {
    async ask(bench) {
      bench.simulator.model.delays.copyMs = 1000;
      return await copyAndRead(bench);
    },
    shows: {
      "when-done": '"" false "copied\\r\\n" true',
      "at-once": '"copied\\r\\n" false "copied\\r\\n" true',
    },
  },
  subvolumeNames: {
    ask: says('/disk/btrfs/subvolume/add fs="storage-pool-fs" name="metal-csi/vol"', seeSubvolumes),
    shows: { nested: '[{".id":"*2","fullname":"metal-csi/vol"}]\r\n', flat: "[]\r\n" },
  },
  subvolumeParent: {
    ask: says(
      `${addVolume}; /disk/btrfs/subvolume/add fs="storage-pool-fs" name="snap" parent="vol" read-only="yes"`,
      '/disk/btrfs/subvolume/remove "vol"',
      seeSubvolumes,
    ),
    shows: {
      free: '[{".id":"*3","fullname":"snap"}]\r\n',
      held: '[{".id":"*2","fullname":"vol"},{".id":"*3","fullname":"snap"}]\r\n',
    },
  },
  freeStep: {
    ask: says(':put [/disk get "storage-pool" free]'),
    shows: { 1: "7301927047168\r\n", 1048576: "7301926748160\r\n" },
  },
  hardwareNames: {
    ask: async ({ say }) => {
      const names = ["percentage-used", "raid-member-state"].map((name) =>
        `:put [/disk get "nvme1" "${name}"]`
      );
      const answers = [];
      for (const line of [...names, "/disk/btrfs/filesystem/print count-only"]) answers.push(await say(line));
      return answers.map((answer) => answer.trim().replace(/ \(.*/, "")).join("; ");
    },
    shows: {
      "all": "1; 0:in_sync; 1",
      "no-smart": "input does not match any value of value-name; 0:in_sync; 1",
      "none": "input does not match any value of value-name; input does not match any value of value-name; " +
        "bad command name filesystem",
    },
  },
};

for (const [name, { ask, shows }] of Object.entries(demonstrations)) {
  for (const [value, expected] of Object.entries<string>(shows)) {
    Deno.test(`the behaviour ${name} at ${value} shows ${JSON.stringify(expected)}`, async () => {
      const clock = new FakeClock();
      await using simulator = await startQuickly({ clock, random: new SeededRandom(), exporter: "tcp" });
      using client = await SshClient.connect(simulator);
      await client.exec(`${makeBasePath}; ${addCommand("a")}`);
      simulator.model.configure(undefined, parseBehaviours({ [name]: value }));
      const say = async (command: string) => (await client.exec(command)).stdout;
      assert.equal(await ask({ simulator, clock, client, say }), expected);
    });
  }
}

/** Waits for work that sleeps on a clock that stands still. */
async function timeless<Result>(clock: FakeClock, awaited: Promise<Result>): Promise<Result> {
  let done = false;
  awaited.finally(() => done = true).catch(() => {});
  while (!done) {
    await clock.advance(1);
    await tick();
  }
  return await awaited;
}

/** Lets pending network events be handled. */
function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
