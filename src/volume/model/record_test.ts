import assert from "node:assert/strict";
import { aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { digest } from "./digest.ts";
import {
  formatComment,
  isSameNode,
  maxCommentBytes,
  maxGrowths,
  newComment,
  nodeDigest,
  parseComment,
  type RecordComment,
  rewritten,
  unfencedNode,
  type VolumeRecord,
} from "./record.ts";
import { formatSource } from "./sources.ts";

function read(text: string): RecordComment {
  const parsed = parseComment(text);
  assert.equal(parsed.state, "record", JSON.stringify(parsed));
  return parsed.state === "record" ? parsed.comment : assert.fail();
}

/** A record with this body and correct check digits. */
function sealed(body: string): string {
  return `{rds1 ${body} x=${digest(body, 8)}}`;
}

const body = "c=00000000 n=000000000000 k=ext4/w p=00000000 b=1";

Deno.test("parseComment() calls a record damaged, not missing, when anything after its mark is changed", () => {
  const text = formatComment(newComment(aRecord()));
  for (let at = "{rds1".length; at < text.length; at++) {
    const mutant = text.slice(0, at) + "~" + text.slice(at + 1);
    assert.equal(parseComment(mutant).state, "damaged", mutant);
  }
});

Deno.test("parseComment() finds no record in what people write", () => {
  for (const text of ["", "backup disk", "{rds}", "rds1 c=1", "{ rds1 }", "{RDS1 c=1}", "{}"]) {
    assert.deepEqual(parseComment(text), { state: "none" }, text);
  }
});

Deno.test("parseComment() refuses two records, newer ones and those cut off", () => {
  const text = formatComment(newComment(aRecord()));
  const cases: [string, RegExp][] = [
    [text + text, /more than one/],
    [`{rds2 note} ${text}`, /more than one/],
    [text.replace("{rds1", "{rds2"), /another version/],
    [text.replace("{rds1", "{rds10"), /another version/],
    [text.slice(0, -1), /not complete/],
    ["{rds1 }", /not complete/],
  ];
  for (const [comment, reason] of cases) {
    const parsed = parseComment(comment);
    assert.equal(parsed.state, "damaged", comment);
    assert.match(parsed.state === "damaged" ? parsed.reason : "", reason);
  }
});

Deno.test("parseComment() refuses a record with correct check digits and invalid content", () => {
  assert.equal(parseComment(sealed(body)).state, "record");
  const wrong = [
    "",
    body.replace("c=00000000 ", ""),
    body.replace("n=000000000000", "n=0"),
    body.replace("k=ext4/w", "k="),
    body.replace("p=00000000", "p=0000000G"),
    body.replace("b=1", "b=-1"),
    body.replace("b=1", "b=1234567890"),
    `${body} b=1`,
    `${body} z=1 z=2`,
    `${body} z=`,
    `${body} Z=1`,
    `${body}  e=1-00000000`,
    `${body} words`,
    `${body} e=01-00000000`,
    `${body} e=1-0000000`,
    `${body} g=0`,
    `${body} h=a@1/w`,
    `${body} e=1-00000000 h=a@1/w,a@2/r`,
    `${body} e=1-00000000 h=a@1/q`,
    `${body} e=1-00000000 h=a@1/ww`,
    `${body} e=1-00000000 h=a`,
    `${body} e=1-00000000 h=a@1/n j=0`,
    `${body} e=1-00000000 h=a@1/w l=2`,
    `${body} e=1-00000000 h=a@1/n m=0a0b0c0`,
    `${body} e=1-00000000 h=a@1/n m=`,
    `${body} e=1-00000000 h=a@1/x u=0a0b0c0`,
    `${body} e=1-00000000 h=a@1/x u=0a0b0c0d@`,
    `${body} e=1-00000000 h=a@1/x u=0a0b0c0d/0a`,
    `${body} e=1-00000000 h=@1/w`,
    `${body} e=1-00000000 h=a@1/w,`,
  ];
  for (const one of wrong) assert.equal(parseComment(sealed(one)).state, "damaged", one);
});

Deno.test("parseComment() and formatComment() keep the fields of a newer version word for word", () => {
  const found = read(sealed(`y=0a0b0c0d ${body} z=1/w,{x e=2-00000000 h=a@1/w`));
  assert.deepEqual(found.record.newerFields, ["y=0a0b0c0d", "z=1/w,{x"]);
  assert.deepEqual(found.record.holders.map(({ nodeId }) => nodeId), ["a"]);
  const left = { ...found.record, holders: [] };
  assert.equal(
    formatComment({ ...found, record: left }),
    sealed(`${body} e=2-00000000 y=0a0b0c0d z=1/w,{x`),
  );
  assert.equal(read(sealed(body)).record.newerFields, undefined);
});

Deno.test("parseComment() treats an unknown time of withdrawal as infinitely late, and takes no other text for one", () => {
  assert.equal(read(sealed(`${body} w=-`)).record.withdrawnAtSeconds, Number.MAX_SAFE_INTEGER);
  for (const time of ["?", "-1", "2gosa7pa2gv", "zzzzzzzzz", "1.5"]) {
    assert.equal(parseComment(sealed(`${body} w=${time}`)).state, "damaged", time);
  }
});

Deno.test("parseComment() returns the machines of holders, and refuses another number of them", () => {
  const fields = `${body} e=1-00000000 h=a@1/x,b@1/x m=0a0b0c0d,-`;
  const machines = read(sealed(fields)).record.holders.map(({ machine }) => machine);
  assert.deepEqual(machines, ["0a0b0c0d", undefined]);
  for (const holders of ["h=a@1/x ", ""]) {
    assert.equal(parseComment(sealed(fields.replace("h=a@1/x,b@1/x ", holders))).state, "damaged");
  }
});

Deno.test("formatComment() keeps what people wrote when the record changes", () => {
  const found = read(`gold ${formatComment(newComment(aRecord()))} (Ann's)`);
  const text = formatComment({ ...found, record: aRecord({ blankEpoch: 0 }) });
  assert.match(text, /^gold \{rds1 .*\} \(Ann's\)$/);
  assert.equal(read(text).record.blankEpoch, 0);
});

Deno.test("formatComment() fits one holder of any legal id beside the largest of everything else", () => {
  const recordOf = (withdrawnAtSeconds: number) =>
    aRecord({
      capabilities: "block/emnorwx",
      epoch: { counter: 999_999_999, nonce: "ffffffff" },
      blankEpoch: 999_999_999,
      withdrawnAtSeconds,
      source: formatSource({ kind: "volume", id: "pvc-0f8fad5b-d9cb-469f-a165-70867728950e" }),
      growths: maxGrowths,
    });
  const about = { sinceSeconds: 36 ** 7 - 1, readOnly: true, machine: "0a0b0c0d" } as const;
  const holder = (nodeId: string) => aHolder(nodeId, { ...about, mode: "multi-node-reader-only" });
  const bytes = (record: VolumeRecord, ...ids: string[]) =>
    formatComment(newComment({ ...record, holders: ids.map(holder) }), 999).length;
  const latest = recordOf(36 ** 7 - 1);
  assert.equal(bytes(latest, "n".repeat(64)), 254);
  assert.equal(bytes(latest, "n".repeat(22), "m".repeat(22)), maxCommentBytes);
  assert.ok(bytes(recordOf(Number.MAX_SAFE_INTEGER), "n".repeat(64)) <= 254, "a time that is not known");
});

Deno.test("a record gets no longer when one of two holders leaves and only its digest is noted", () => {
  const record = aRecord({ capabilities: "block/x", epoch: { counter: 1, nonce: "ffffffff" } });
  const holder = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-multi-writer" });
  const both = formatComment(newComment({ ...record, holders: [holder("a"), holder("b")] }));
  const unfenced = { nodeDigest: nodeDigest("a") };
  const one = formatComment(newComment({ ...record, holders: [holder("b")], unfenced }));
  assert.ok(one.length <= both.length, `${one.length} ${both.length}`);
});

Deno.test("formatComment() refuses two long holders, and counts a note in bytes", () => {
  const epoch = { counter: 1, nonce: "ffffffff" };
  const holders = [aHolder("n".repeat(64)), aHolder("m".repeat(64))];
  const record = aRecord({ epoch, holders, source: `v:${"s".repeat(32)}` });
  assert.throws(() => formatComment(newComment(record)), refusal("precondition", /bytes=\d+ most=255/));
  const left = maxCommentBytes - formatComment(newComment(aRecord())).length;
  formatComment({ record: aRecord(), before: "x".repeat(left), after: "" });
  const umlauts = "ü".repeat(left / 2 + 1);
  assert.throws(
    () => formatComment({ record: aRecord(), before: umlauts, after: "" }),
    refusal("precondition"),
  );
});

Deno.test("rewritten() makes another comment each time, and changes nothing else", () => {
  const record = aRecord({ epoch: { counter: 1, nonce: "ffffffff" }, holders: [aHolder("n")] });
  const once = rewritten(record);
  const comments = [record, once, rewritten(once)].map((one) => formatComment(newComment(one)));
  assert.equal(new Set(comments).size, 3);
  assert.deepEqual({ ...once, growths: undefined }, { ...record, growths: undefined });
});

Deno.test("a record gets no longer when its last holder leaves, so that a withdrawal always fits", () => {
  const epoch = { counter: 1, nonce: "ffffffff" };
  const held = formatComment(newComment(aRecord({ epoch, holders: [aHolder("n")] })));
  const left = formatComment(newComment(aRecord({ epoch, withdrawnAtSeconds: 2_000_000_000 })));
  assert.ok(left.length <= held.length);
});

Deno.test("isSameNode() recognises a node by id and machine", () => {
  const left = unfencedNode(aHolder("a", { machine: "0a0b0c0d" }));
  assert.equal(isSameNode(left, "a", "0a0b0c0d"), true);
  assert.equal(isSameNode(left, "a", undefined), false, "it may be another machine of that name");
  assert.equal(
    isSameNode(unfencedNode(aHolder("a")), "a", "0a0b0c0d"),
    true,
    "which one left is not on record",
  );
  assert.equal(isSameNode(unfencedNode(aHolder("a")), "a", undefined), true);
  assert.equal(isSameNode(left, "a", "ffffffff"), false);
  assert.equal(isSameNode(left, "b", "0a0b0c0d"), false);
});
