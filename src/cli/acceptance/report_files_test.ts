import assert from "node:assert/strict";
import { recordedNames } from "../../router_profile/report/allowed.ts";
import { Recording } from "../../router_profile/report/recorded.ts";
import { formatReport, parseReport } from "../../router_profile/report/report.ts";
import { VolumeError } from "../../volume/errors.ts";
import { ownMarks } from "./names.ts";
import { prepareOutput, writeReport } from "./report_files.ts";
import type { RunResult } from "./run.ts";

const router = {
  ...{ address: "10.9.8.7", port: 22, user: "keeper", keyFile: undefined, passwordFile: undefined },
  ...{ hostKeys: ["ssh-ed25519 AAAAC3Nz"], insecureSkipVerify: false },
};
const options = { output: "/report", router, nvmeAddress: "10.9.8.7" };

function resultWith(more: Partial<RunResult["report"]>, captures: RunResult["captures"] = {}): RunResult {
  const report = {
    driver: "1",
    router: { version: "7.24.4 (stable)", board: "RDS2216", poolFilesystem: "btrfs", poolBytes: 1 } as const,
    ...{ steps: [], commands: [], own: ownMarks, transcript: [] },
    ...more,
  };
  return {
    report,
    captures,
    recording: new Recording(recordedNames(ownMarks)),
    names: ["photos", "/pool/photos"],
  };
}

/** Returns the files that were written, by name. */
async function written(result: RunResult): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  await writeReport(options, result, ["hunter2"], (path, text) => {
    files[path] = text;
    return Promise.resolve();
  });
  return files;
}

const entry = { step: "probe", end: "ended", ms: 1, frames: [], text: [] } as const;

Deno.test("writeReport() writes the report for people and for programs, and captures", async () => {
  const files = await written(
    resultWith({ transcript: [{ ...entry, command: "/disk print" }] }, { "errors.txt": "no\n" }),
  );
  assert.deepEqual(Object.keys(files), [
    "/report/report.json",
    "/report/report.md",
    "/report/captures/errors.txt",
  ]);
  assert.equal(parseReport(files["/report/report.json"]!).transcript.length, 1);
});

for (
  const [what, result] of [
    ["a secret", resultWith({ transcript: [{ ...entry, command: ':put "hunter2"' }] })],
    ["an address", resultWith({ transcript: [{ ...entry, command: "/disk print", text: ["at 10.9.8.7"] }] })],
    ["a name", resultWith({}, { "errors.txt": "failure: photos is busy\n" })],
    [
      "the user",
      resultWith({ transcript: [{ ...entry, command: "/disk print", frames: [[{ owner: "keeper" }]] }] }),
    ],
  ] as const
) {
  Deno.test(`writeReport() writes nothing when ${what} is in it`, async () => {
    const files: string[] = [];
    await assert.rejects(
      writeReport(options, result, ["hunter2"], (path) => {
        files.push(path);
        return Promise.resolve();
      }),
      (error) => VolumeError.is(error, "precondition") && !error.message.includes("hunter2"),
    );
    assert.deepEqual(files, []);
  });
}

/** Words of a report that an owner may have given to a user, a pool or a folder. */
const ownWords = [
  ...[
    "rds-csi-acceptance",
    "acceptance-1",
    "rds1",
    "img",
    "driver",
    "cluster",
    "profile",
    "own",
    "text",
    "event",
  ],
  ...["limits", "nested", "harmless", "proplist", "serialize", "put", "uptime", "cpu", "platform", "pass"],
];

Deno.test("writeReport() writes a report whose own words are an owner's names too", async () => {
  const example = new URL("../../../tests/captures/reports/simulator-in-a-guest.json", import.meta.url);
  const { report, ...result } = resultWith(parseReport(await Deno.readTextFile(example)));
  const known = { ...result, report, names: [...ownWords, ...ownWords.map((word) => `/${word}/${word}`)] };
  assert.equal(Object.keys(await written(known)).length, 3);
  const mentioned = ownWords.filter((word) => formatReport(report).includes(word));
  assert.deepEqual(mentioned, ownWords);
});

Deno.test("writeReport() hides a note in which a word is one of the owner's names", async () => {
  const step = {
    step: "block: clone",
    promise: "OK is true",
    result: "fail",
    note: "the photos differ",
    ms: 1,
    commands: 1,
  } as const;
  const { steps } = parseReport((await written(resultWith({ steps: [step] })))["/report/report.json"]!);
  assert.equal(steps[0]!.note, "…");
});

Deno.test("prepareOutput() makes the folder, and names one that it cannot make or that has a report", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    await prepareOutput(`${folder}/a`);
    await prepareOutput(`${folder}/a`);
    await Deno.writeTextFile(`${folder}/a/report.json`, "{}");
    await assert.rejects(
      prepareOutput(`${folder}/a`),
      /^VolumeError: .*has one already: output=.*\/a; name another/,
    );
    await assert.rejects(
      prepareOutput(`${folder}/a/report.json`),
      /^VolumeError: Cannot write a report because a part of its path is no folder: output=.*report.json$/,
    );
    await Deno.symlink(`${folder}/gone`, `${folder}/link`);
    await assert.rejects(prepareOutput(`${folder}/link`), /^VolumeError: Cannot write a report because /);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
