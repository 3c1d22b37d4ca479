/** A text of the source is replaced by another. */
interface Edit {
  readonly file: string;
  /** A text that occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

/** A mistake that a developer could make. */
export interface PlantedBug extends Edit {
  readonly title: string;
  /** The second guard, where two stand against the same. */
  readonly also?: Edit;
}

export function editsOf({ also, ...edit }: PlantedBug): readonly Edit[] {
  return also === undefined ? [edit] : [edit, also];
}

/** A final error says that nothing is left on the node. */
const finalAnyway: Edit = {
  file: "src/node/stage/settled.ts",
  from: "if (isRetried(error) || await holds(clock, context, isClear)) throw error;",
  to: "throw error;",
};

/** The mistakes that the histories must find. */
export const plantedBugs: readonly PlantedBug[] = [
  {
    title: "a new epoch has the NQN of the last one",
    file: "src/volume/model/epoch.ts",
    from: "return { counter: (last?.counter ?? 0) + 1, nonce: newNonce(random) };",
    to: "return last !== undefined && last.counter > 0 ? last : { counter: 1, nonce: newNonce(random) };",
  },
  {
    title: "a new epoch is no later than one that the cluster knows",
    file: "src/controller/records/epochs.ts",
    from: "  const latest = await clusterView.latestEpoch(stored.id, context);\n",
    to: "  const latest = 0;\n",
  },
  {
    title: "a publish believes a record older than the cluster",
    file: "src/volume/rules/publish.ts",
    from: "  return Math.max(latestEpoch, exportedCounter(volume)) >",
    to: "  return Math.max(latestEpoch * 0, exportedCounter(volume)) >",
  },
  {
    title: "an unpublish believes a record older than the cluster",
    file: "src/controller/records/epochs.ts",
    from: "  return latest > (record.epoch?.counter ?? 0);",
    to: "  return latest < (record.epoch?.counter ?? 0) * 0;",
  },
  {
    title: "rounds leave a record older than the cluster",
    file: "src/controller/reconcile/reconciler.ts",
    from: "    compared(await this.#trySteps(first.steps.filter(isOlder), attachments, context));",
    to: "    compared(true);",
  },
  {
    title: "a round withdraws by an old list of attachments",
    file: "src/controller/reconcile/reconciler.ts",
    from: "    if (!isStillSo(attachments)) return false;\n",
    to: "",
  },
  {
    title: "nobody waits until a withdrawn export has ended",
    file: "src/controller/records/grace.ts",
    from: "if (waitMs === 0) return false;",
    to: "if (waitMs >= 0) return false;",
  },
  {
    title: "what was read before that wait is believed after it",
    file: "src/controller/records/loop.ts",
    from: '      view = await read("need" in decision ? decision.need : "own");\n      continue;\n',
    to: "",
  },
  {
    title: "a second node is let in beside the first",
    file: "src/volume/rules/publish.ts",
    from: "    assertMayJoin(volume, request);\n",
    to: "",
  },
  {
    title: "an unpublish withdraws nothing",
    file: "src/controller/attachments/unpublish.ts",
    from: "        step: withdrawal(call, volume),\n",
    to: `        answer: { how: "gone" },\n`,
  },
  {
    title: "a change is believed without being read back",
    file: "src/controller/records/take.ts",
    from: "const isWritten = (after: StoredVolume) => after.comment === comment && isDone(after);",
    to: "const isWritten = () => true;",
  },
  {
    title: "a volume is deleted while a node has it",
    file: "src/controller/volumes/delete.ts",
    from: "  assertNotHeld(volume);\n",
    to: "",
  },
  {
    title: "a step is taken without a read while its volume's last export may linger",
    file: "src/controller/records/loop.ts",
    from: "  if (endsGrace[kind] && volume !== undefined && graceLeftMs(call, volume) > 0) return {};\n",
    to: "",
  },
  {
    title: "a disk is removed unread, exported or not",
    file: "src/controller/records/premises.ts",
    from: '    export: [{ is: "not-exported" }],\n    // Shorter than the prefix',
    to: "    export: [],\n    // Shorter than the prefix",
  },
  {
    title: "a volume counts as deleted when the router does not show it yet",
    file: "src/controller/volumes/delete.ts",
    from: "  assertAbsenceProven(view, folders, settleMs);\n",
    to: "",
    also: {
      file: "src/controller/other_slots.ts",
      from: "  assertSettled(inventory, settleMs);\n",
      to: "",
    },
  },
  {
    title: "what an earlier command may still do is forgotten",
    file: "src/controller/records/in_doubt.ts",
    from: "return this.wasSent(id, comment) || this.othersMayStillApply(id, comment);",
    to: "return this.othersMayStillApply(id, comment);",
  },
  {
    title: "a text of the router counts as the end of a command",
    file: "src/controller/records/commit.ts",
    from: `"notSent" in outcome || outcome.ended)`,
    to: `"notSent" in outcome || outcome.ended || outcome.refusal !== undefined)`,
  },
  {
    title: "what an earlier leader's command may still do is forgotten",
    file: "src/controller/records/in_doubt.ts",
    from: "return this.#suspects() && this.#own.get(id) !== comment;",
    to: "return false;",
  },
  {
    title: "a copy is believed though its source was used meanwhile",
    file: "src/controller/volumes/copying.ts",
    from: "      assertUnused(call, request, view);\n",
    to: "",
  },
  {
    title: "a copy is judged by the size of its disk",
    file: "src/controller/volumes/copying.ts",
    from: "const sizes = [source.sizeBytes, image?.sizeBytes ?? 0n];",
    to: "const sizes = [source.sizeBytes];",
  },
  {
    title: "a snapshot is answered for which a removal was sent",
    file: "src/controller/snapshots/create.ts",
    from: "    assertStays(call, existing);\n",
    to: "",
  },
  {
    title: "a list leaves out the snapshots of blank volumes",
    file: "src/controller/snapshots/list.ts",
    from: "    one.ready && (filter.id",
    to: "    one.ready && !one.blank && (filter.id",
  },
  {
    title: "a snapshot counts whose folder is not one of the driver's",
    file: "src/volume/model/snapshots/snapshots.ts",
    from:
      "    if (snapshot.cluster !== cluster || !basePaths.some((base) => isIn(base, snapshot))) continue;",
    to: "    if (snapshot.cluster !== cluster || !basePaths.some((base) => base !== snapshot.id)) continue;",
  },
  {
    title: "a clone stays as small as its source",
    file: "src/controller/volumes/create.ts",
    from: "  if (volume.stored.sizeBytes >= sizeBytes) return { volume };\n",
    to: "  if (volume.stored.sizeBytes > 0n || sizeBytes === 0n) return { volume };\n",
  },
  {
    title: "a clone takes over what an earlier one of its name has left",
    file: "src/controller/volumes/clone.ts",
    from: "    assertNoImage({ ...view, files }, plan);\n",
    to: "",
  },
  {
    title: "an expansion answers without growing anything",
    file: "src/controller/volumes/expand.ts",
    from: "  const step = grown(call, verb, volume, sizeBytes);\n",
    to: "  return { answer: answer({ ...volume, stored: { ...stored, sizeBytes } }) };\n",
  },
  {
    title: "a toggle that fails behind its off leaves the export off",
    file: "src/controller/volumes/expand.ts",
    from: `  return step.kind === "toggle" ? { ...step, mend: () => turnOnAgain(call, stored.id) } : step;`,
    to: "  return step;",
  },
  {
    title: "a node formats whatever has no file system that it knows",
    file: "src/volume/rules/format.ts",
    from: `if (probe.signature.state === "found") return decideFound(question, probe.signature.type);`,
    to: `if (probe.signature.state === "found") return { action: "format" };`,
  },
  {
    title: "a node forgets with its unstage that the volume was used",
    file: "src/volume/model/staging/content.ts",
    from: `return used || filesystem !== "none" || header !== "none";`,
    to: "return false;",
  },
  {
    title: "a node makes a second file system in one epoch",
    file: "src/volume/rules/format.ts",
    from: `  if (question.everMounted || question.mkfs === "done") {`,
    to: `  if (question.everMounted && question.mkfs !== "done") {`,
  },
  {
    title: "a node leaves the connection when it unstages",
    file: "src/node/stage/unstage.ts",
    from: "  await tearDown(deps, volume, context);\n",
    to: "",
  },
  {
    title: "a stage that is refused leaves its connection",
    file: "src/node/stage/raise.ts",
    from: 'undo.add("disconnect", (undoing) => disconnectUnused(deps, nqn, undoing));',
    to: "",
    also: finalAnyway,
  },
  {
    title: "a stage that could not be undone ends with its final error",
    file: "src/node/stage/undo.ts",
    from: "if (failures.length === 0) throw error;",
    to: "if (failures.length >= 0) throw error;",
    also: finalAnyway,
  },
  {
    title: "a publish that is refused leaves its mount at the pod",
    file: "src/node/publish/publish.ts",
    from: "        if (await isAt(undoing)) await deps.mounts.unmount(mountPoint, undoing);\n",
    to: "",
    also: finalAnyway,
  },
  {
    title: "a node forgets what lies on a volume that the next pod mounts with other options",
    file: "src/volume/model/staging/content.ts",
    from: "content: contentFor(wanted, content),",
    to: `content: { header: "none", filesystem: "none", rootOpened: false, used: false },`,
  },
  {
    title: "a node does not record that it begins a file system",
    file: "src/node/stage/stage_device.ts",
    from: "const started = await staging.deps.stagingStore.write(begun);",
    to: "const started = stagingState;",
  },
  {
    title: "a node answers an expansion before it sees the size",
    file: "src/node/expand.ts",
    from: "return sizeForUser() < requiredBytes ? undefined : found;",
    to: "return found;",
  },
  {
    title: "an expansion leaves the file system as small as it was",
    file: "src/node/expand.ts",
    from: "    await deps.filesystems.grow(device, filesystem, mountPoint, context);\n",
    to: "",
  },
  {
    title: "a leader leads for longer than others wait for it",
    file: "src/kubernetes/election.ts",
    from: "export const leadMs = 10_000;",
    to: "export const leadMs = 60_000;",
  },
  {
    title: "an old leader does not look at its lead before a command",
    file: "src/cli/serve/leadership.ts",
    from: "    return this.#clock.monotonicMs() < this.#untilMs\n",
    to: "    return this.#untilMs > 0\n",
  },
  {
    title: "a list names nodes whose export is off",
    file: "src/volume/rules/publish.ts",
    from: "  return isExportedAsRecorded(volume) ? nodeIdsOf(volume.record.holders) : [];",
    to: "  return nodeIdsOf(volume.record.holders);",
  },
  {
    title: "a person's note leaves too little room for the record that it had room for",
    file: "src/controller/records/comment.ts",
    from: "  return Math.max(maxCommentBytes, byteLength(stored.comment));",
    to: "  return maxCommentBytes + 0 * stored.comment.length;",
  },
  {
    title: "a record is written without the note behind it",
    file: "src/volume/model/record.ts",
    from: "x=${digest(body, 8)}}${comment.after}`;",
    to: "x=${digest(body, 8)}}`;",
  },
  {
    title: "a record that a person cut is put back as one that the router cut",
    file: "src/controller/records/comment.ts",
    from: "kept.length < written.length && written.startsWith(kept);",
    to: "kept.length < written.length;",
  },
  {
    title: "a growth that the router forgot stays forgotten",
    file: "src/controller/attachments/forgotten_growths.ts",
    from: "    if (imageBytes <= sizeBytes || !canGrow || isImported(volume.record)) return undefined;",
    to: "    if (imageBytes > 0n || !canGrow || isImported(volume.record)) return undefined;",
  },
  {
    title: "a disk grows to less than its image",
    file: "src/controller/load.ts",
    from: "  return imageBytes > sizeBytes ? imageBytes : sizeBytes;",
    to: "  return imageBytes > sizeBytes ? sizeBytes : sizeBytes;",
  },
  {
    title: "a volume is published without its image",
    file: "src/controller/attachments/publish.ts",
    from: `  if (volume.record.holders.length === 0) assertImageShown(volume, view, "publish");\n`,
    to: "",
  },
  {
    title: "a round leaves an export off that a node relies on",
    file: "src/volume/rules/reconcile.ts",
    from: `      if (isLost) steps.push({ action: "restore", volume });\n`,
    to: "",
  },
  {
    title: "a volume is published in whatever size is read back",
    file: "src/controller/records/steps.ts",
    from: "(!isAssumed || after.sizeBytes === stored.sizeBytes);",
    to: "true;",
  },
  {
    title: "a volume is published that the router has mounted",
    file: "src/controller/load.ts",
    from: "  assertNotUsedByRouter(volume.stored, verb);",
    to: "",
  },
  {
    title: "a volume is published though another disk has its image",
    file: "src/controller/load.ts",
    from: "  assertNotShared(deps, volume.stored.id, view, verb);",
    to: "",
  },
  {
    title: "a node joins though no pod of the machine runs on it",
    file: "src/volume/rules/migration_pairs.ts",
    from: "return used.has(name) ? undefined : `no pod of its virtual machine runs on ${name}`;",
    to: "return used.size > 0 ? undefined : `no pod of its virtual machine runs on ${name}`;",
  },
  {
    title: "a pod that has ended still counts for a pair",
    file: "src/volume/rules/migration_pairs.ts",
    from: "  const running = users.filter(({ launcher }) => launcher?.hasEnded === false);\n",
    to: "  const running = [...launchers.values()].map((launcher) => ({ ...launcher, launcher }));\n",
  },
  {
    title: "a node joins by a record of before another one joined",
    file: "src/controller/attachments/publish.ts",
    from: "  if (isShared) await assertNoHolderMissing(call, volume, request.nodeId);\n",
    to: "",
  },
  {
    title: "a third node joins two",
    file: "src/volume/rules/publish.ts",
    from: "  if (migrating && holders.length < maxMigratingHolders) return;\n",
    to: "  if (migrating) return;\n",
  },
  {
    title: "a node joins without a pair",
    file: "src/controller/attachments/publish.ts",
    from: "  if (isShared && !holds) await assertPair(call, volume, request.nodeId);\n",
    to: "",
  },
  {
    title: "a node joins where one that left may still write",
    file: "src/volume/rules/publish.ts",
    from: "    assertShutOut(volume, request, deps);\n",
    to: "",
  },
  {
    title: "a node that leaves stays in the record",
    file: "src/volume/rules/unpublish.ts",
    from: '    return { action: "leave", record: withoutNode(record, remaining), remaining, unfenced };\n',
    to: '    return { action: "leave", record, remaining, unfenced };\n',
  },
  {
    title: "a node takes a router that does not answer for a fence",
    file: "src/volume/rules/fence.ts",
    from: `if (answers.length === 0) return undecided("its target does not answer");`,
    to: `if (answers.length === 0) return { state: "fenced", why: "its target does not answer" };`,
  },
  {
    title: "an unpublish looks for the disk in no other slot",
    file: "src/controller/attachments/unpublish.ts",
    from: "  if (!stored.exported) return true;\n",
    to: "  if (stored.id.length > 0) return true;\n",
  },
  {
    title: "a deletion takes the file that a person gave the disk",
    file: "src/controller/volumes/delete.ts",
    from: `  assertOwnImage(call, volume, "delete");\n`,
    to: "",
  },
  {
    title: "a deletion looks for the disk in no other slot",
    file: "src/controller/volumes/delete.ts",
    from: `  await assertInNoOtherSlot(call, view, "delete");\n`,
    to: "",
  },
  {
    title: "lists hold up the renewal of the Lease",
    file: "src/kubernetes/connections.ts",
    from: "    const lease = client.apart(leaseConnections);",
    to: "    const lease = client;",
  },
  {
    title: "lists of the loops take every connection",
    file: "src/kubernetes/connections.ts",
    from: "    this.lists = new LimitedApi(client, maxPages);",
    to: "    this.lists = client;",
  },
];
