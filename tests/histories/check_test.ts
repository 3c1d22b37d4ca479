import assert from "node:assert/strict";
import { violations } from "./check.ts";
import type { HistoryEvent } from "./events.ts";
import {
  attached,
  bytes,
  call,
  calm,
  created,
  deleted,
  first,
  forgotten,
  formats,
  gone,
  image,
  kernel,
  leaves,
  ok,
  published,
  reissued,
  second,
  snapshotted,
  staged,
  turnedOffAtRest,
  turnedOn,
  unpublished,
  volume,
  written,
} from "./sample_events.ts";

const good: Record<string, readonly HistoryEvent[]> = {
  "a whole life": deleted,
  "an expansion that dies while the export is off": [
    ...[...written, call(4, "expand", { bytes: 2n * bytes }), image("w1")],
    ...[ok(4, { error: "unavailable" }), image("w1", first)],
  ],
  "a volume that is made again, blank": [...deleted, call(7, "create", { bytes }), image(undefined), ok(7)],
  "a volume that is made again before it was deleted, and gets a late write": [
    ...written,
    { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: false },
    ...unpublished.slice(written.length),
    call(6, "delete"),
    ok(6, { error: "unavailable" }),
    call(7, "create", { bytes }),
    ok(7),
    image("w2"),
  ],
  "a file system on a volume made again, while a write to the deleted one still waits": [
    ...deleted,
    kernel("n1", [first]),
    call(7, "create", { bytes }),
    image(undefined),
    ok(7),
    { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: false },
    image(undefined, second),
    formats("n2", "ext4-2"),
  ],
  "a write that an earlier configuration lets through": [
    ...written,
    { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: false },
    call(4, "unpublish", { node: "n1" }),
    { kind: "write", node: "n2", of: volume, value: "w3", acknowledged: true },
    image("w3", second),
    { kind: "rebooted", forgets: true },
    image("w2", first),
  ],
  "a list of what is ready": [...snapshotted, call(7, "list"), ok(7, { listed: ["snap-1"] })],
  "a list without what is deleted meanwhile": [
    ...snapshotted,
    call(7, "list"),
    call(8, "deleteSnapshot", { of: "snap-1" }),
    ok(7, { listed: [] }),
  ],
  "a move to another node": [
    ...unpublished,
    call(6, "publish", { node: "n2" }),
    image("w1", second),
    ok(6, { nqn: second }),
    kernel("n2", [second]),
    { kind: "read", node: "n2", of: volume, value: "w1" },
  ],
  "a write that nobody acknowledged comes late, or never": [
    ...written,
    { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: false },
    { kind: "read", node: "n1", of: volume, value: "w1" },
    image("w2", first),
    { kind: "read", node: "n1", of: volume, value: "w2" },
  ],
  "a clone of what its source had while it was made": [
    ...unpublished,
    call(6, "create", { of: "pvc-2", bytes, source: volume }),
    image("w1", undefined, { of: "pvc-2" }),
    ok(6),
  ],
  "a file system where data was lost, and then the record of its use": [
    ...written,
    { kind: "blanked", of: volume },
    image(undefined, first),
    { kind: "rebooted", forgets: true },
    formats("n1", "ext4-2"),
  ],
  "an interrupted mkfs is made once more": [
    ...staged,
    formats("n1", "ext4-2"),
    image("ext4-2", first),
  ],
  "a file system that was never written to is lost, and made once more": [
    ...staged,
    { kind: "blanked", of: volume },
    image(undefined, first),
    formats("n1", "ext4-2"),
    image("ext4-2", first),
  ],
  "a node that restarts": [...written, { kind: "crashed", node: "n1" }, kernel("n1", [])],
  "a publish that fails after its unpublish": [
    ...created,
    call(2, "publish", { node: "n1" }),
    image(undefined, first),
    call(3, "unpublish", { node: "n1" }),
    image(undefined),
    ok(3),
    ok(2, { error: "unavailable" }),
  ],
  "an export that a person turns off": [...written, { kind: "edited", of: volume }, image("w1")],
  "an epoch that may be older than another node's, where the cluster could not be asked": [
    ...forgotten,
    ok(3, { nqn: reissued, compared: false }),
  ],
  "an epoch that a call without the cluster has begun, and the next one finds": [
    ...forgotten,
    ok(3, { error: "unavailable", compared: false }),
    call(4, "publish", { node: "n2" }),
    ok(4, { nqn: reissued, compared: true }),
  ],
  "a later epoch than that of another node": [
    ...forgotten,
    image(undefined, second),
    ok(3, { nqn: second, compared: true }),
  ],
  "a call that has to wait and then takes a command more": [
    ...published,
    ...leaves,
    ok(3, { calm: { ...calm, commands: 2, waited: true } }),
  ],
  "a call that a person's note costs a command": [
    ...published,
    ...leaves,
    ok(3, { calm: { ...calm, commands: 2, byHand: true } }),
  ],
  "a create that tries first, and finds its volume": [
    ...created,
    call(2, "create", { bytes }),
    ok(2, { calm: { ...calm, commands: 2 } }),
  ],
  "a note that leaves no room for a holder": [
    ...created,
    { kind: "noted", of: volume, isThere: true },
    call(2, "publish", { node: "n1" }),
    ok(2, { error: "precondition", calm }),
  ],
  "a pool that is full": [
    call(1, "create", { bytes }),
    ok(1, { error: "exhausted", calm: { ...calm, changes: 0 } }),
  ],
  "a volume that was not there for a moment": [
    ...created,
    call(2, "delete"),
    call(3, "expand", { bytes }),
    gone,
    ok(3, { error: "not-found" }),
  ],
  "an export that a call takes away after a person turned it on": [
    ...turnedOn,
    call(5, "unpublish", { node: "n2" }),
    image(undefined),
    ok(5),
  ],
  "an export that is taken from a node which an earlier cluster does not know": [
    ...published,
    { kind: "cluster-restored" },
    image(undefined),
    { kind: "rested", wanted: [] },
  ],
  "an export that is taken from a node whose publish an earlier cluster does not know": [
    ...created,
    call(2, "publish", { node: "n1" }),
    { kind: "cluster-restored" },
    image(undefined, first),
    ok(2, { nqn: first }),
    image(undefined),
    { kind: "rested", wanted: [] },
  ],
  "an export that a person turned on for a node that another one has followed": [
    ...turnedOn,
    { kind: "rested", wanted: [`${volume} n2`] },
  ],
  "an export that stays off where the router cuts its record": [
    ...written,
    { kind: "attachment", of: volume, node: "n1", nqn: first },
    { kind: "edited", of: volume },
    image("w1"),
    { kind: "rested", wanted: [`${volume} n1`], cuts: true },
  ],
  "leaders that may change nothing, and change nothing": [
    ...published,
    { kind: "resting" },
    { kind: "rested", wanted: undefined },
  ],
  "leaders that may change nothing, and an unpublish that the router carries out late": [
    ...published,
    call(3, "unpublish", { node: "n1" }),
    ok(3, { error: "unavailable" }),
    ...turnedOffAtRest,
  ],
  "a create that is repeated as it was": [...created, call(2, "create", { bytes }), ok(2)],
  "a call that fails says nothing": [...created, call(2, "delete"), ok(2, { error: "unavailable" })],
};

const bad: Record<string, readonly [readonly HistoryEvent[], RegExp]> = {
  "two nodes with a way to one image": [
    [...written, image("w1", first, { open: [first, second] }), kernel("n2", [second])],
    /n1 and n2 can write to pvc-1 at once/,
  ],
  "one NQN for two nodes": [
    [...published, call(3, "publish", { node: "n2" }), ok(3, { nqn: first })],
    /n2 was given the NQN of n1/,
  ],
  "an epoch no later than one that another node has": [
    [...forgotten, ok(3, { nqn: reissued, compared: true })],
    /n2 was given nqn:pvc-1:1-00000003, no later than nqn:pvc-1:1-00000001 of another node/,
  ],
  "an export that nothing wants any more": [
    [...published, { kind: "rested", wanted: [] }],
    /pvc-1 stays exported, and no attachment wants it/,
  ],
  "an export for a node that has no attachment any more, while another one waits": [
    [...published, { kind: "cluster-restored" }, { kind: "rested", wanted: [`${volume} n2`] }],
    /pvc-1 stays exported to n1, which has no attachment/,
  ],
  "an export older than an attachment after some rounds": [
    [...published, attached, { kind: "rested", wanted: [`${volume} n2`] }],
    /nqn:pvc-1:1-00000001 stays on, and n2 has nqn:pvc-1:2-00000002/,
  ],
  "an export that a person has turned off, and that stays so after some rounds": [
    [
      ...written,
      { kind: "attachment", of: volume, node: "n1", nqn: first },
      { kind: "edited", of: volume },
      image("w1"),
      { kind: "rested", wanted: [`${volume} n1`] },
    ],
    /pvc-1 stays off, and n1 has it/,
  ],
  "an export older than an attachment after an unpublish": [
    [
      ...published,
      attached,
      call(3, "unpublish", { node: "n3" }),
      ok(3, { compared: true }),
    ],
    /nqn:pvc-1:1-00000001 stays on, and n2 has nqn:pvc-1:2-00000002/,
  ],
  "an acknowledged write that is read no more": [
    [...written, { kind: "read", node: "n1", of: volume, value: "ext4" }],
    /n1 read ext4 from pvc-1, and may read w1/,
  ],
  "data that nobody wrote": [[...written, image("other", first)], /pvc-1 has other, and may have w1/],
  "a late write of a node that has lost the volume": [
    [
      ...unpublished,
      { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: false },
      { kind: "write", node: "n2", of: volume, value: "w3", acknowledged: true },
      image("w3"),
      image("w2"),
    ],
    /pvc-1 has w2, and may have w3/,
  ],
  "a file system on data": [
    [...written, formats("n1", "ext4-2")],
    /n1 made a file system on pvc-1, which had w1/,
  ],
  "a file system where data was lost": [
    [...written, { kind: "blanked", of: volume }, image(undefined, first), formats("n1", "ext4-2")],
    /n1 made a file system on pvc-1, which had lost its data/,
  ],
  "a file system where data was lost that was written since an earlier configuration came back": [
    [
      ...written,
      { kind: "rebooted", forgets: true },
      { kind: "write", node: "n1", of: volume, value: "w2", acknowledged: true },
      image("w2", first),
      { kind: "blanked", of: volume },
      image(undefined, first),
      formats("n1", "ext4-2"),
    ],
    /n1 made a file system on pvc-1, which had lost its data/,
  ],
  "a file system where data was lost, and an attachment knew of its use": [
    [
      ...written,
      { kind: "attachment", of: volume, node: "n1", nqn: first },
      { kind: "blanked", of: volume },
      image(undefined, first),
      { kind: "rebooted", forgets: true },
      formats("n1", "ext4-2"),
    ],
    /n1 made a file system on pvc-1, which had lost its data/,
  ],
  "an OK for what never was": [
    [...written, call(4, "unpublish", { node: "n1" }), ok(4)],
    /unpublish of pvc-1 for n1 was answered OK and never so/,
  ],
  "an expansion that did not happen": [
    [...created, call(2, "expand", { bytes: 2n * bytes }), ok(2)],
    /expand of pvc-1 was answered OK and never so/,
  ],
  "an export that an expansion has turned off and not on again": [
    [
      ...written,
      call(4, "expand", { bytes: 2n * bytes }),
      image("w1"),
      ok(4, {
        error: "unavailable",
        undisturbed: true,
      }),
    ],
    /an expansion left nqn:pvc-1:1-00000001 off/,
  ],
  "an export that goes after an expansion has turned it off and on": [
    [
      ...[...written, call(4, "expand", { bytes: 2n * bytes }), image("w1"), image("w1", first)],
      ...[ok(4, { error: "unavailable", undisturbed: true }), image("w1")],
    ],
    /nqn:pvc-1:1-00000001 was taken away, and nobody asked for that/,
  ],
  "a publish that another call undoes": [
    [...written, image("w1")],
    /nqn:pvc-1:1-00000001 was taken away, and nobody asked for that/,
  ],
  "an export that the unpublish of another node takes away": [
    [...written, call(4, "unpublish", { node: "n2" }), image("w1"), ok(4)],
    /nqn:pvc-1:1-00000001 was taken away, and nobody asked for that/,
  ],
  "an epoch begun while the cluster was away, when a call has gone on since under another": [
    [
      ...forgotten,
      ok(3, { error: "unavailable", compared: false }),
      call(4, "publish", { node: "n2" }),
      image(undefined, second),
      ok(4, { nqn: second, compared: true }),
      call(5, "unpublish", { node: "n2" }),
      image(undefined),
      ok(5),
      call(6, "publish", { node: "n2" }),
      image(undefined, reissued),
      ok(6, { nqn: reissued, compared: true }),
    ],
    /n2 was given nqn:pvc-1:1-00000003, no later than nqn:pvc-1:1-00000001 of another node/,
  ],
  "a publish that is answered after its unpublish": [
    [
      ...created,
      call(2, "publish", { node: "n1" }),
      image(undefined, first),
      call(3, "unpublish", { node: "n1" }),
      image(undefined),
      ok(3),
      ok(2, { nqn: first }),
    ],
    /publish of pvc-1 for n1 was answered OK and no longer so/,
  ],
  "an unpublish that is answered after its publish": [
    [
      ...published,
      call(3, "unpublish", { node: "n1" }),
      image(undefined),
      call(4, "publish", { node: "n1" }),
      image(undefined, second),
      ok(4, { nqn: second }),
      ok(3),
    ],
    /unpublish of pvc-1 for n1 was answered OK and no longer so/,
  ],
  "a node that gives up what it was given": [
    [...written, kernel("n1", [], true)],
    /n1 gave nqn:pvc-1:1-00000001 up, and nobody asked for that/,
  ],
  "a call that takes a command more than it has to": [
    [...published, ...leaves, ok(3, { calm: { ...calm, commands: 2 } })],
    /unpublish of pvc-1 for n1 took 2 commands, and has to do with 1/,
  ],
  "a call that changes what is as it wants it": [
    [...created, call(2, "expand", { bytes }), ok(2, { calm })],
    /expand of pvc-1 changed something, and all was as it wants it/,
  ],
  "a call that is put off for nothing": [
    [call(1, "create", { bytes }), ok(1, { error: "unavailable", calm })],
    /create of pvc-1 was refused as unavailable, and nothing is wrong/,
  ],
  "a publish that is refused for nothing": [
    [...created, call(2, "publish", { node: "n1" }), ok(2, { error: "precondition", calm })],
    /publish of pvc-1 for n1 was refused as precondition, and nothing is wrong/,
  ],
  "a change where there is no room": [
    [call(1, "create", { bytes }), ok(1, { error: "exhausted", calm })],
    /create of pvc-1 was refused for lack of room after a change/,
  ],
  "a volume that is not found, and is there": [
    [...created, call(2, "expand", { bytes }), ok(2, { error: "not-found" })],
    /expand of pvc-1 found none, and it was there/,
  ],
  "an OK after a refusal": [
    [...published, ...leaves, ok(3, { refused: true })],
    /unpublish of pvc-1 was answered OK after it was refused/,
  ],
  "an export that a round takes away from whom waits for it": [
    [...turnedOn, image(undefined)],
    /nqn:pvc-1:1-00000001 was turned off, and an attachment wants it/,
  ],
  "a change by leaders that may change nothing": [
    [...published, { kind: "edited", of: volume }, ...turnedOffAtRest],
    /pvc-1 was exported as nqn:pvc-1:1-00000001, and is as undefined, and leaders may not change that/,
  ],
  "a create with other parameters than the volume has": [
    [...created, call(2, "create", { bytes, otherwise: true }), ok(2)],
    /create of pvc-1 was answered OK, and it has other parameters/,
  ],
  "a disk on another file": [
    [call(1, "create", { bytes }), image(undefined, undefined, { elsewhere: true }), ok(1)],
    /create of pvc-1 was answered OK and never so/,
  ],
  "an import of what is somebody else's": [
    [call(1, "import", { of: "other-a" }), ok(1)],
    /import of other-a was answered OK and never so/,
  ],
  "a volume for a node while another one has it": [
    [
      ...published,
      { kind: "edited", of: volume },
      call(3, "publish", { node: "n2" }),
      image(undefined, second),
      ok(3, {
        nqn: second,
      }),
    ],
    /n2 was given pvc-1, and n1 has it/,
  ],
  "an image that goes below a node": [
    [...written, call(4, "delete"), { ...gone, exported: first } as HistoryEvent],
    /pvc-1 went while n1 had it/,
  ],
  "an image that goes by itself": [[...created, gone], /pvc-1 went, and nobody asked for it/],
  "a clone of something else": [
    [
      ...unpublished,
      call(6, "create", { of: "pvc-2", bytes, source: volume }),
      image("ext4", undefined, { of: "pvc-2" }),
      ok(6),
    ],
    /pvc-2 was made with ext4, and pvc-1 had w1/,
  ],
  "a snapshot that changes": [
    [...snapshotted, image("w2", undefined, { of: "snap-1" })],
    /the snapshot snap-1 has w2, and had w1/,
  ],
  "data of a deleted volume in the next of its name": [
    [...deleted, call(7, "create", { bytes }), image("w1"), ok(7)],
    /pvc-1 was made with w1, and a blank volume had nothing/,
  ],
  "a list without a snapshot that is ready": [
    [...snapshotted, call(7, "list"), ok(7, { listed: [] })],
    /the snapshot snap-1 is ready, and was not listed/,
  ],
  "a list with somebody else's snapshot": [
    [...snapshotted, call(7, "list"), ok(7, { listed: ["snap-1", "snap-2"] })],
    /snap-2 was listed, and nobody has asked for that snapshot/,
  ],
  "other people's data": [[{ kind: "others-lost", of: "/pool/x.img" }], /the data of \/pool\/x\.img is lost/],
  "something that is left": [[{ kind: "left", of: "/pool/x.img" }], /\/pool\/x\.img is left/],
  "a call that never ends": [[{ kind: "stuck" }], /goes on long after its time/],
  "an answer that nobody had thought of": [
    [...created, call(2, "expand", { bytes }), ok(2, { error: "internal" })],
    /met what nobody had thought of/,
  ],
};

for (const [title, history] of Object.entries(good)) {
  Deno.test(`violations() finds nothing in a good history: ${title}`, () => {
    assert.deepEqual(violations(history), []);
  });
}

for (const [title, [history, expected]] of Object.entries(bad)) {
  Deno.test(`violations() finds ${title}, and nothing else`, () => {
    const found = violations(history);
    assert.equal(found.length, 1, found.join("\n"));
    assert.match(found[0]!, expected);
  });
}
