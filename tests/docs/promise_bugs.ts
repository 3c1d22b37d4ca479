import { type PlantedBug, plantedBugs } from "../histories/planted_bugs.ts";
import type { PromiseBug } from "./planted_page.ts";

/** One of the bugs that are planted for the histories. */
function known(title: string): PlantedBug {
  const [bug] = plantedBugs.filter((one) => one.title === title);
  return bug!;
}

/** At least one bug for each promise. */
export const promiseBugs: readonly PromiseBug[] = [
  {
    promise:
      "A device is formatted only if it is proven to be the volume, blank at both ends and where file systems keep copies of their superblocks, and on record as never used",
    bug: known("a node formats whatever has no file system that it knows"),
    test: "src/volume/rules/format_test.ts",
  },
  {
    promise: "A call for one volume touches no other",
    bug: {
      title: "a volume is staged at the path of another one",
      file: "src/node/publish/target_paths.ts",
      from: "others.find((other) => placesOf(other).some((location) => overlaps(path, location)))",
      to: "others.find(() => false)",
    },
    test: "src/node/publish/target_paths_test.ts",
  },
  { promise: "Two nodes never write to one volume", bug: known("a second node is let in beside the first") },
  {
    promise: "A node that comes back from the dead writes nothing",
    bug: known("a new epoch has the NQN of the last one"),
  },
  {
    promise: "No node gives up a volume in use because the router lacks it",
    bug: {
      title: "a volume that the router does not offer for long is given up, though no unstage was asked for",
      file: "src/volume/rules/fence.ts",
      from: "input.unstaging && memory !== undefined && memory.missedForMs > minMs",
      to: "memory !== undefined && memory.missedForMs >= 0",
    },
    test: "src/volume/rules/fence_test.ts",
  },
  {
    promise: "Two machines under one node name never use one volume",
    bug: {
      title: "a node stages what was published to another machine of its name",
      file: "src/node/stage/wish.ts",
      from: "machine.is(publish.machine) !== false) return;",
      to: "machine.is(publish.machine) !== undefined) return;",
    },
    test: "src/node/stage/stage_test.ts",
  },
  {
    promise: "No export in use is toggled",
    bug: {
      title: "the export of a shared volume is toggled when a node leaves it",
      file: "src/controller/attachments/unpublish.ts",
      from: `kind: "leave", volume, record: noted, change: {},`,
      to: `kind: "leave", volume, record: noted, change: { bounce: true },`,
    },
    test: "src/controller/attachments/detaching_node_test.ts",
  },
  {
    promise: "A list of hosts that a person has set on a disk stays as it is",
    bug: {
      title: "a withdrawal clears the list of hosts",
      file: "src/routeros/store/mutations.ts",
      from: "=== false) settings.push(ros`nvme-tcp-export=${false}",
      to: "=== false) settings.push(ros`nvme-tcp-export=${false} nvme-tcp-server-allow-host-name=${''}",
    },
    test: "tests/contract/controller_routers_test.ts",
  },
  {
    promise: "A tool that hangs keeps no fenced volume from being cut off, unpublished and unstaged",
    bug: {
      title: "a fenced volume stays connected while a call holds its lock",
      file: "src/node/fencing/fence_watch.ts",
      from: "      if (!isDone) await this.#options.fencing.forceDisconnect(subject, result.why, context);\n",
      to: "      if (!isDone) return;\n",
    },
    test: "src/node/fencing/fence_watch_test.ts",
  },
  {
    promise: "What is written in a volume steers neither the router nor the node",
    bug: {
      title: "a pool's label in a partition of a volume is overlooked",
      file: "src/doctor/router/labels.ts",
      from: `kind === "file" || volumes.has(parent);`,
      to: `kind === "file" || volumes.has(kind + parent);`,
    },
    test: "src/doctor/router/labels_test.ts",
  },
  {
    promise: "Checksums that are asked for are there",
    bug: {
      title: "a connection that was there counts as one with checksums",
      file: "src/node/stage/raise.ts",
      from: "wasConnected && here.device === undefined && digests.length > 0",
      to: "wasConnected && here.device !== undefined && digests.length > 0",
    },
    test: "src/node/stage/digests_test.ts",
  },
  {
    promise: "The driver changes only its own disks and files",
    bug: {
      title: "a dollar sign in a comment names a variable of the router",
      file: "src/routeros/console/command.ts",
      from: String.raw`value.replace(/[\\"$]/g`,
      to: String.raw`value.replace(/[\\"]/g`,
    },
    test: "tests/property/quoting_test.ts",
  },
  {
    promise: "Gone is only what is proven to be gone",
    bug: known("a volume counts as deleted when the router does not show it yet"),
  },
  {
    promise: "No node and the router itself write to one disk",
    bug: known("a volume is published that the router has mounted"),
    test: "tests/contract/controller_router_uses_test.ts",
  },
  {
    promise: "A disk that was there already keeps its data",
    bug: {
      title: "an imported disk counts as one that this driver has made",
      file: "src/volume/model/sources.ts",
      from: `return record.source?.startsWith("i:") === true;`,
      to: `return record.source === "i:";`,
    },
    test: "tests/contract/controller_static_test.ts",
  },
  {
    promise: "Only a directory that this cluster has made is deleted",
    bug: {
      title: "a directory without this cluster's mark is deleted",
      file: "src/controller/directories/delete.ts",
      from: "if (names.pop() !== markedName(name, cluster)) throw",
      to: "if (names.pop() === markedName(name, cluster) + path) throw",
    },
    test: "tests/contract/directories_delete_test.ts",
  },
  {
    promise: "A node binds only the directory that the path names",
    bug: {
      title: "a path that leads over a link is bound",
      file: "src/node/directory/in_share.ts",
      from: "if (real !== path) {",
      to: "if (real === mountPoint) {",
    },
    test: "src/node/directory/share_test.ts",
  },
  {
    promise: "No crash makes a node lose or keep a share wrongly",
    bug: {
      title: "a share stays when its last volume goes",
      file: "src/node/directory/unpublish.ts",
      from: "  await shares.releaseUnused(context);\n",
      to: "",
    },
    test: "src/node/directory/unpublish_test.ts",
  },
  {
    promise: "A server that does not answer holds up neither the node service nor other servers' volumes",
    bug: {
      title: "a write to a silent server is waited for without a limit",
      file: "src/nfs/nfs_mounts.ts",
      from: "const flushMs = 30_000;",
      to: "const flushMs = Infinity;",
    },
    test: "src/nfs/nfs_mounts_test.ts",
  },
  {
    promise: "Locks in a directory hold on all nodes",
    bug: {
      title: "a mount whose locks hold on one node only is allowed",
      file: "src/volume/model/directory/nfs_options.ts",
      from: `  nolock: "locks would hold on this node only",\n`,
      to: "",
    },
    test: "src/volume/model/directory/nfs_options_test.ts",
  },
  {
    promise: "No directory is shared beside images of block volumes",
    bug: {
      title: "a share may hold images of block volumes",
      file: "src/volume/rules/directory_share.ts",
      from: "  if (image !== undefined) {\n    return `it holds images",
      to: "  if (image === mountPoint) {\n    return `it holds images",
    },
    test: "tests/contract/directories_test.ts",
  },
  {
    promise: "A snapshot that is ready is whole, and stays",
    bug: known("a copy is believed though its source was used meanwhile"),
    test: "src/controller/volumes/copying_test.ts",
  },
  {
    promise: "A new clone holds what its source holds, and nothing that an earlier one of its name has left",
    bug: known("a clone takes over what an earlier one of its name has left"),
    test: "src/controller/volumes/clone_test.ts",
  },
  {
    promise: "A read-only volume shows everything that was synced to it",
    bug: {
      title: "a log that cannot be read counts as empty",
      file: "src/node/stage/log_replay.ts",
      from: `  if (log.state === "unknown") throw unreadable(names, log.reason);\n`,
      to: `  if (log.state === "unknown") return;\n`,
    },
    test: "src/node/stage/log_replay_test.ts",
  },
  {
    promise: "A router that reboots and gives its exports new identities costs nothing that was synced",
    bug: {
      title: "a device of a new identity may hold another file system",
      file: "src/node/stage/new_identity.ts",
      from: "if (filesystemUuid === undefined || uuid === filesystemUuid) return;",
      to: "if (filesystemUuid === undefined || uuid !== path) return;",
    },
    test: "src/node/stage/new_identity_test.ts",
  },
  {
    promise: "With a device layer it costs a pause",
    bug: {
      title: "writes go to a path that came back before its namespace is checked",
      file: "src/node/layer/layer_watch.ts",
      from: "      await deps.maps!.failPath(map, context);\n",
      to: "",
    },
    test: "src/node/layer/layer_watch_test.ts",
  },
  {
    promise: "An export in use goes off for a new size only below device layers",
    bug: {
      title: "an export goes off for a new size though its nodes have no layer",
      file: "src/controller/volumes/expand.ts",
      from: "    isHeldLayered(volume) && isExportedAsRecorded(volume);\n",
      to: "    isExportedAsRecorded(volume);\n",
    },
    test: "src/controller/volumes/expand_in_use_test.ts",
  },
  {
    promise: "Without it, nothing is different",
    bug: {
      title: "a volume gets a layer that nobody has asked for",
      file: "src/node/stage/wish.ts",
      from: `if ((deviceLayer ?? deps.settings.deviceLayer ?? "none") === "none") return plain;`,
      to: `if (deps.maps === undefined) return plain;\n  if (volumeId !== "") deviceLayer = "auto";`,
    },
    test: "src/node/layer/without_layer_test.ts",
  },
  {
    promise: "Of an encrypted volume the router sees cipher text",
    bug: {
      title: "a mapping with options that weaken it counts as this driver's",
      file: "src/device_mapper/crypt_table.ts",
      from: "    words.every((word) => harmless.has(word));\n",
      to: "    words.every((word) => word.length > 0);\n",
    },
    test: "src/device_mapper/crypt_table_test.ts",
  },
  {
    promise: "Nothing is deleted through a mount",
    bug: {
      title: "a folder is removed with what is in it",
      file: "src/host/paths.ts",
      from: "() => removeEmptyFolder(path)",
      to: "() => Deno.remove(path, { recursive: true })",
    },
    test: "src/host/paths_test.ts",
  },
  {
    promise: "An answer is OK only when it is done",
    bug: known("a change is believed without being read back"),
  },
  {
    promise:
      "A controller that has taken over answers OK only what a late command of the one before cannot undo",
    bug: known("what an earlier leader's command may still do is forgotten"),
    test: "src/controller/records/write_test.ts",
  },
  {
    promise: "Expanded is only what has grown",
    bug: known("an expansion answers without growing anything"),
  },
  {
    promise: "Every call can be repeated, and cut off at any step",
    bug: {
      title: "a node that is killed does not know whether it had begun a file system",
      file: "src/node/stage/stage_device.ts",
      from: `  if (content.filesystem === "started") await refuseWhileBusy(deps, device, context);\n`,
      to: "",
    },
    test: "src/node/stage/stage_interrupted_test.ts",
  },
  {
    promise: "It is CSI",
    bug: {
      title: "a volume that exists with another size is refused with another code",
      file: "src/csi/server/grpc_status.ts",
      from: `"exists-incompatible": "ALREADY_EXISTS",`,
      to: `"exists-incompatible": "ABORTED",`,
    },
    test: "src/csi/server/grpc_status_test.ts",
  },
  {
    promise: "An update of the driver interrupts no I/O",
    bug: {
      title: "a driver that starts does not know what it has on record, and drops its connections",
      file: "src/node/state/state_file_name.ts",
      from: "decodeHandle(name.slice(0, -ending.length))",
      to: "decodeHandle(name)",
    },
    test: "src/node/connections/orphaned_connections_test.ts",
  },
  {
    promise: "What outlives a process keeps its form",
    bug: {
      title: "a record has a longer checksum",
      file: "src/volume/model/record.ts",
      from: "x=${digest(body, 8)}}${comment.after}`;",
      to: "x=${digest(body, 9)}}${comment.after}`;",
    },
    test: "tests/formats/golden_test.ts",
  },
  {
    promise: "A router that is away and comes back costs time and nothing else",
    bug: known("a node takes a router that does not answer for a fence"),
  },
  {
    promise: "A router that is frozen does not look healthy",
    bug: {
      title: "a router that answers nothing counts as slow",
      file: "src/routeros/ssh/session.ts",
      from: "silentAfterMs: 20_000,",
      to: "silentAfterMs: 2_000_000,",
    },
    test: "src/routeros/ssh/session_connection_test.ts",
  },
  {
    promise: "A frozen router delays only its own calls",
    bug: {
      title: "the loops of one router see the volumes of all",
      file: "src/cli/serve/router_cluster.ts",
      from: "one.volumeId === undefined ? [one] : stripped(ids, { ...one, volumeId: one.volumeId })",
      to: "[one]",
    },
    test: "src/cli/serve/router_cluster_test.ts",
  },
  {
    promise: "Keys are exchanged without a restart",
    bug: {
      title: "an empty file is taken for the password",
      file: "src/cli/serve/router.ts",
      from: `  if (password === "") {\n`,
      to: `  if (password === path) {\n`,
    },
    test: "tests/contract/credentials_test.ts",
  },
  {
    promise: "One controller serves, and another takes over",
    bug: known("a leader leads for longer than others wait for it"),
    test: "src/kubernetes/election_test.ts",
  },
  {
    promise: "What hangs in the kernel hangs alone",
    bug: {
      title: "an operation that hangs is waited for without a limit",
      file: "src/host/timed_files.ts",
      from: "const queueMs = 10_000;",
      to: "const queueMs = 10_000_000;",
    },
    test: "src/host/timed_files_test.ts",
  },
  {
    promise: "No API server, no new attachments, and no harm",
    bug: {
      title: "a cluster that does not answer counts as one that wants nothing",
      file: "src/controller/reconcile/loop.ts",
      from: "      this.#boots.release();\n      throw error;\n",
      to: "      this.#boots.release();\n      return [];\n",
    },
    test: "src/controller/reconcile/loop_test.ts",
  },
  {
    promise: "The cluster's loss is not the volumes'",
    bug: {
      title: "a cluster that has lost its objects has its exports withdrawn",
      file: "src/volume/rules/reconcile.ts",
      from: "return count > maxWithdrawals && count * 2 > inUse;",
      to: "return count > maxWithdrawals && count > inUse;",
    },
    test: "src/controller/reconcile/loop_test.ts",
  },
  {
    promise: "The way from the legacy driver, and back",
    bug: {
      title: "a legacy volume is taken over though another disk uses its image",
      file: "src/volume/rules/legacy_migration.ts",
      from:
        "  if (sharer !== undefined) throw doubt(id, `another disk uses its image: disk=${sharer.id}`);\n",
      to: "",
    },
    test: "src/volume/rules/legacy_migration_test.ts",
  },
  {
    promise: "No request ends the driver, or makes it do what was not asked",
    bug: {
      title: "a name with control characters is served",
      file: "src/volume/model/ids/ids.ts",
      from: String.raw`if (/[\u0000-\u001f\u007f-\u009f]/.test(name)) {`,
      to: String.raw`if (/[\u0000]/.test(name)) {`,
    },
    test: "src/volume/model/ids/ids_test.ts",
  },
  {
    promise: "Nothing that a router sends is guessed at",
    bug: {
      title: "an answer that is cut off counts as whole",
      file: "src/routeros/console/reply.ts",
      from: "const whole = rest.endsWith(closing) && !payload.includes(nonce);",
      to: "const whole = !payload.includes(nonce);",
    },
    test: "src/routeros/console/reply_test.ts",
  },
  {
    promise: "Secrets are not logged",
    bug: {
      title: "a request is logged with its secrets",
      file: "src/csi/server/access_log.ts",
      from: "secret.has(name) ? REDACTED : copy(field, secret)",
      to: "copy(field, secret)",
    },
    test: "src/csi/server/access_log_test.ts",
  },
  {
    promise: "A probe leaves nothing behind and lets no host in",
    bug: {
      title: "a probe exports its scratch disk to everybody",
      file: "src/doctor/probe/exports.ts",
      from: "`${port} nvme-tcp-server-allow-host-name=${hostOf(probe, 1).nqn}`",
      to: "`${port}`",
    },
    test: "tests/contract/doctor_probe_limits_test.ts",
  },
  {
    promise: "The executable runs only the tools and touches only the folders that the build lists",
    bug: {
      title: "a node may run a shell",
      file: "tools/permissions.ts",
      from: "  run: allToolPaths,\n",
      to: `  run: [...allToolPaths, "/bin/sh"],\n`,
    },
    test: "tests/deploy/image_test.ts",
  },
  {
    promise: "The rules of the chart are enough, and no wider than what is used",
    bug: {
      title: "the driver may delete PersistentVolumes",
      file: "deploy/chart/templates/rbac.yaml",
      from: `    resources: ["persistentvolumes"]\n    verbs: ["get", "list", "patch"]\n`,
      to: `    resources: ["persistentvolumes"]\n    verbs: ["get", "list", "patch", "delete"]\n`,
    },
    test: "tests/deploy/chart_test.ts",
  },
  {
    promise: "Everything ends and leaves nothing",
    bug: known("a node leaves the connection when it unstages"),
  },
  {
    promise: "Every command of the quick start works as it stands there",
    bug: {
      title: "the quick start leaves the user that it has made",
      file: "docs/quick-start.md",
      from: "/user/remove rds-csi",
      to: "/user/print",
    },
    test: "tests/docs/quick_start_test.ts",
  },
  {
    promise: "Every message has a page that says what to do",
    bug: {
      title: "a message is not on the page of errors",
      file: "src/node/stage/log_replay.ts",
      from: "Cannot stage the volume read-only because its file system's log is not empty after a replay",
      to: "Cannot stage the volume read-only because its log is in the way",
    },
    test: "tests/docs/errors_test.ts",
  },
  {
    promise: "What is wrong is found by the doctor, with the command that mends it",
    bug: {
      title: "the command for an SSH service that is off turns it off",
      file: "src/doctor/router/fixes.ts",
      from: `'/ip/service/enable [find where name="ssh"]'`,
      to: `'/ip/service/disable [find where name="ssh"]'`,
    },
    test: "tests/contract/fixes_test.ts",
  },
];
