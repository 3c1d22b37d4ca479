import assert from "node:assert/strict";
import { command, type Fragment, ros } from "../../routeros/console/command.ts";
import { framed, newFrameNonce } from "../../routeros/console/reply.ts";
import { Transcript } from "../../routeros/ssh/transcript.ts";
import { Recording } from "../../router_profile/report/recorded.ts";
import { type AcceptanceReport, formatReport, parseReport } from "../../router_profile/report/report.ts";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { DirectRouter } from "../../../tests/fakes/direct_router.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { describeDifferences, replayReport } from "./replay.ts";

const own = {
  ids: [1, 2].map((digit) => `pvc-${String(digit).repeat(28)}`),
  cluster: "2a97516c",
  nqnPrefix: "nqn.2026-11.io.srvlab.acc",
};
const [first = "", second = ""] = own.ids;
const pathOf = (id: string) => `/storage-pool/mine/${id}.${own.cluster}.img`;
const record = (id: string) =>
  `{rds1 c=${own.cluster} n=${id.slice(4, 16)} k=block/w b=1 e=0-422fcbcf x=35572e35}`;

function add(id: string): Fragment {
  return ros`/disk add type=${"file"} slot=${id} file-path=${pathOf(id)} file-size=${
    1n << 30n
  } mount-filesystem=${false} nvme-tcp-export=${false} comment=${record(id)}`;
}

const disks = ros`/disk print detail as-value where type=${"file"} or mounted`;

/** Returns the report of some commands to a simulated router: two disks that come, change, are refused and go. */
async function recordReport(): Promise<AcceptanceReport> {
  const router = new DirectRouter(new FakeClock(), "/storage-pool/mine", {});
  router.model.files.makeDirectories("storage-pool/mine");
  const names = {
    ...own,
    slot: "storage-pool",
    mountPoint: "storage-pool",
    label: "storage-pool-fs",
    basePath: "/storage-pool/mine",
  };
  const transcript = new Transcript(router.model.clock, new Recording(names));
  const connection = await transcript.through(router).connect(new AbortController().signal);
  const random = new SeededRandom(40);
  const send = async (statements: readonly Fragment[], ...queries: readonly Fragment[]) => {
    const nonce = newFrameNonce(random);
    const frames = queries.map((query, index) => framed(nonce, index, query));
    await connection.exec(command(...statements, ...frames), new AbortController().signal);
  };
  transcript.step = "disks";
  await send([], disks, ros`/system resource print as-value`);
  await send([add(first), add(second)], disks);
  await send([add(first)], disks);
  await send([ros`/disk set [find where slot=${first}] file-size=${2n << 30n}`], disks);
  transcript.rebooted();
  await send([], ros`/file print detail as-value proplist=name,type,size where name~${`${first}[.]`}`);
  await send(
    [ros`/disk remove [find where slot=${first}]`, ros`/disk remove [find where slot=${second}]`],
    disks,
  );
  const { entries } = transcript;
  const router0 = {
    version: "7.24.4 (stable)",
    board: "RDS2216",
    poolFilesystem: "btrfs",
    poolBytes: 7681574174720,
  } as const;
  return { driver: "test", router: router0, steps: [], commands: [], own, transcript: entries };
}

const adapters = () => ({ clock: new FakeClock(), random: new SeededRandom(7) });

async function replayed(report: AcceptanceReport): Promise<readonly string[]> {
  return describeDifferences(await replayReport(parseReport(formatReport(report)), adapters()));
}

Deno.test("the report of the simulator itself shows no difference", async () => {
  const report = await recordReport();
  assert.equal(report.transcript.length, 7);
  assert.deepEqual(await replayed(report), []);
});

type Row = Record<string, unknown>;
type Entry = { command: string; frames: Row[][]; text: string[] };

/** Alterations of a report, and the only difference that each may show. */
const alterations: readonly (readonly [what: string, alter: (entries: Entry[]) => void, shown: RegExp])[] = [
  [
    "another text of a refusal",
    ([, , refused]) => refused!.text[0] = "failure: already exists",
    /^3 disks: text: /,
  ],
  ["a command that was done, and was refused", ([, done]) => {
    done!.text.push("failure: not enough space");
    done!.frames = [null as unknown as Row[]];
  }, /^2 disks: refusal: router refuses: failure: not enough space, simulator does it/],
  ["a refusal that was none", ([, , refused]) => {
    refused!.text.pop();
    refused!.frames = [[]];
  }, /^3 disks: refusal: router does it, simulator refuses/],
  [
    "a key more",
    ([, disks]) => disks!.frames[0]![1]!["thin-provisioned"] = true,
    /^2 disks: missing key at .*thin-prov/,
  ],
  [
    "a key less",
    ([, disks]) => delete disks!.frames[0]![1]!["sector-size"],
    /^2 disks: extra key at .*sector-size/,
  ],
  [
    "a number as a text",
    ([, disks]) => disks!.frames[0]![1]!["size"] = "1073741824",
    /^2 disks: type at .*size/,
  ],
  [
    "a truth as a text",
    ([, disks]) => disks!.frames[0]![1]!["nvme-tcp-export"] = "no",
    /^2 disks: type at .*export/,
  ],
  [
    "another size",
    ([, , , grown]) => grown!.frames[0]![1]!["size"] = 1 << 30,
    /^4 disks: value at .*size: router 1073741824/,
  ],
  ["another record", ([, disks]) => disks!.frames[0]![1]!["comment"] = "", /^2 disks: value at .*comment/],
  ["another order", ([, disks]) => disks!.frames[0]!.reverse(), /^2 disks: order at 0/],
  ["a disk less", ([, disks]) => disks!.frames[0]!.pop(), /^2 disks: extra row at 0\[slot=pvc-2/],
  [
    "a disk that stays",
    (entries) => entries[6]!.frames[0]!.push(entries[1]!.frames[0]![1]!),
    /^7 disks: missing row at 0\[slot=pvc-1/,
  ],
  [
    "a list for one item",
    ([disks]) => disks!.frames[1] = [disks!.frames[1] as unknown as Row],
    /^1 disks: type at 1/,
  ],
  ["noise", ([disks]) => disks!.text.push("(25 messages not shown)"), /^1 disks: text/],
  [
    "another mount point",
    ([disks]) => disks!.frames[0]![0]!["mount-point"] = "/pool",
    /^1 disks: value at .*mount-point/,
  ],
];

for (const [what, alter, shown] of alterations) {
  Deno.test(`a report with ${what} shows that alone`, async () => {
    const report = structuredClone(await recordReport());
    alter(report.transcript as unknown as Entry[]);
    const lines = await replayed(report);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0]!, shown);
  });
}

for (
  const [what, change] of [
    ["no JSON", () => "{"],
    ["another format", (text: string) => text.replace("acceptance/1", "acceptance/2")],
    ["no transcript", (text: string) => text.replace('"transcript"', '"other"')],
    ["an entry without a command", (text: string) => text.replace('"command":', '"commands":')],
    ["a pool without a size", (text: string) => text.replace("7681574174720", '"7"')],
  ] as const
) {
  Deno.test(`parseReport() throws for ${what}`, async () => {
    const text = change(formatReport(await recordReport()));
    assert.throws(() => parseReport(text), RangeError);
  });
}
