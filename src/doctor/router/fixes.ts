import { safeVersions } from "../../routeros/console/router_info.ts";
import { advice, type Fix } from "../../volume/model/finding.ts";

/** A value in the form of the router's console. */
function quoted(value: string): string {
  return `"${value.replace(/[\\"$]/g, (character) => `\\${character}`)}"`;
}

/** The group of this driver's users, as in the quick start. */
const group = "rds-csi";

/**
 * The fixes for findings on a router. `…`, FILE and NODES stand for what only a person knows.
 *
 * A test runs every entry that has commands: it resolves its finding, and changes nothing else.
 */
export const routerFixes = {
  address: () =>
    advice(
      "wait if the router is booting; else set --rds-address ADDRESS, and check the route from this machine to it",
    ),
  name: () =>
    advice(
      "set --rds-address to the router's address instead of its name, which pods often cannot resolve, or correct the DNS",
    ),
  nvmeName: () =>
    advice("set --nvme-address to the router's address instead of its name, or correct the DNS"),
  sshRefused: (): Fix => ({
    before: "wait if the router is booting; else ",
    commands: ['/ip/service/enable [find where name="ssh"]'],
    after: '; if it is enabled, --rds-port with the port of /ip/service/print where name="ssh"',
  }),
  sshClosed: (from: string | undefined): Fix => ({
    before: "wait if the router is booting; else look whom its SSH lets in: ",
    commands: ['/ip/service/print detail where name="ssh"'],
    after: `; if there are addresses (available-from, before 7.24 address), add ${originOf(from)}`,
  }),
  portSilent: (port: number): Fix => ({
    before: "if the address is right and the router is on, with each network of NODES, which have to hold " +
      `${originOf(undefined)}: `,
    commands: [letIn(port)],
    after: ruleZero,
  }),
  hostKeyLine: (line: string, address: string, port: number): Fix => ({
    before: `--rds-host-key '${line}' after comparing it with the output on a trusted connection, ` +
      "such as the management port: ",
    commands: [`ssh-keyscan -p ${port} -t ed25519,rsa ${address}`],
  }),
  noPassword: (user: string): Fix => ({
    commands: [`/user/set [find where name=${quoted(user)}] password=…`],
  }),
  credentials: () => advice("set --rds-key FILE or --rds-password-file FILE"),
  secretMissing: (flag: string) =>
    advice(
      `set --${flag} to the path at which this process sees the file; in the chart, name the Secret that holds it`,
    ),
  keyPublic: () => advice("set --rds-key to the private key, whose file has the same name without .pub"),
  keyUnusable: (user: string): Fix => ({
    before: "make a key for the driver alone, without a passphrase: ",
    commands: ["ssh-keygen -t ed25519 -N '' -f rds-csi-key"],
    after: `; then upload rds-csi-key.pub to the router, ${keyImport(user, "rds-csi-key.pub")} there, ` +
      "and set --rds-key",
  }),
  keyRefused: (user: string, from: string | undefined): Fix => ({
    before: userAddress(from),
    commands: [allowOrigins(user), keyImport(user, "FILE.pub")],
    after: ", the latter only if /user/ssh-keys/print lacks the key",
  }),
  passwordRefused: (user: string, from: string | undefined): Fix => ({
    before:
      "set --rds-password-file to a file with the router's password, or --rds-key FILE if it takes no passwords, or run, " +
      userAddress(from),
    commands: [allowOrigins(user), `/user/set [find where name=${quoted(user)}] password=…`],
  }),
  policy: (user: string): Fix => ({
    commands: [
      `:if ([:len [/user/group/find where name="${group}"]] = 0) do={/user/group/add name=${group} policy=ssh,read,write} ` +
      `else={/user/group/set [find where name="${group}"] policy=ssh,read,write}`,
      `/user/set [find where name=${quoted(user)}] group=${group}`,
    ],
  }),
  policyUnclear: (): Fix => ({ commands: ["/user/group/print"] }),
  sessions: (): Fix => ({ commands: ['/ip/service/set [find where name="ssh"] max-sessions=20'] }),
  portClosed: (port: number): Fix => ({
    before: "with each network of NODES: ",
    commands: [letIn(port)],
    after: ruleZero,
  }),
  /** A rule at the end makes sure that there is one before which the others are placed. */
  portOpen: (port: number, ipv4: boolean, ipv6: boolean): Fix => ({
    before: "if only NODES should reach it: ",
    commands: [
      ...(ipv4
        ? [
          `/ip/firewall/filter/add ${placeholderRule}`,
          letIn(port),
          `/ip/firewall/filter/add ${portRule(port)} action=drop place-before=1`,
        ]
        : []),
      ...(ipv6
        ? [
          `/ipv6/firewall/filter/add ${placeholderRule}`,
          `/ipv6/firewall/filter/add ${portRule(port)} action=drop place-before=0`,
        ]
        : []),
    ],
    after: ruleZero,
  }),
  sshOpen: (property: string): Fix => ({
    before:
      "with NODES, which has to hold the controllers (in pods without masquerading: the pod network) and everyone who " +
      "administers the router over SSH: ",
    commands: [sshOrigins(property)],
  }),
  sshExploited: (user: string, property: string): Fix => ({
    before:
      `upgrade RouterOS to ${safeVersions} or later, at a time when volumes may wait, because the router ` +
      "reboots; until then let only NODES (the controllers, in pods without masquerading the pod network, and everyone " +
      "who administers the router) reach SSH: ",
    commands: [sshOrigins(property), `/user/set [find where name=${quoted(user)}] address=NODES`],
  }),
  packageMissing: (name: string): Fix => ({
    before:
      `upload the package ${name} of the router's own version and architecture, then (the router reboots) at ` +
      "a time when volumes may wait: ",
    commands: ["/system/package/apply-changes"],
  }),
  packageDisabled: (name: string): Fix => ({
    before: "at a time when volumes may wait, because the router reboots: ",
    commands: [`/system/package/enable ${name}`, "/system/package/apply-changes"],
  }),
  clockUnknown: (): Fix => ({ commands: ["/system/clock/print"] }),
  clockOff: (): Fix => ({
    before: "find out which clock is wrong, and its time source; on the router: ",
    commands: ["/system/ntp/client/print"],
  }),
  poolLook: (slot = ""): Fix => ({
    commands: [slot === "" ? "/disk/print detail" : `/disk/print detail where slot~${quoted(slot)}`],
  }),
  btrfsLook: (): Fix => ({ commands: ["/disk/btrfs/filesystem/print detail"] }),
  labelLook: (label: string): Fix => ({
    commands: [`/disk/print detail where fs-label=${quoted(label)}`],
  }),
  poolFull: () =>
    advice(
      "add drives, or delete only what is not needed: snapshots first (kubectl get volumesnapshots -A " +
        "--sort-by=.metadata.creationTimestamp), then claims, then what rds-csi audit names; after a loss or a restore of " +
        "router or cluster delete nothing of that, as it may be your only copy",
    ),
  /** By hand: a label that another file system has would make one of the two mistaken for the other. */
  poolLabel: () =>
    advice("give the file system a label that no other one has, as the router's manual of Btrfs says"),
  poolCopy: (mountPoint: string) =>
    advice(
      `if it is a copy of /${mountPoint}, give it another label before the router mounts it, because the router finds ` +
        "subvolumes by the label; leave it alone if it is a drive of that pool",
    ),
  poolTwice: (slot: string, mountPoint: string): Fix => ({
    before: `if no image is used from /${mountPoint}: `,
    commands: [`/disk/set [find where slot=${quoted(slot)}] mount-filesystem=no`],
  }),
  poolUnmounted: (slot: string): Fix => ({
    before: "if the router should use its file system: ",
    commands: [`/disk/set [find where slot=${quoted(slot)}] disabled=no mount-filesystem=yes`],
  }),
  overcommit: () => advice("set --overcommit 1"),
  otherRouter: () =>
    advice(
      "upgrade RouterOS and probe again, or use another router; report the profile, because no such router is known",
    ),
  probeAgain: () => advice("run rds-csi doctor --probe again, and give the controller the new profile"),
  basePath: (path: string) => advice(`set --base-path ${path}`),
  moreBasePaths: (path: string) => advice(`add --base-path ${path} after the present ones`),
  poolAway: (pool: string, path: string) =>
    advice(
      `if volumes are on /${pool}, mount it again and leave --base-path as it is, because the driver would count them as deleted; ` +
        `else set --base-path ${path}`,
    ),
  folderMissing: (name: string): Fix => ({ commands: [`/file/add type=directory name=${quoted(name)}`] }),
  shareOn: (slot: string): Fix => ({
    before: "if everybody who reaches port 2049 may read and write the whole pool: ",
    commands: [`/disk/set [find where slot=${quoted(slot)}] nfs-sharing=yes`],
  }),
  shareOff: (slot: string, ...properties: readonly string[]): Fix => ({
    before: "after moving what others use from there: ",
    commands: [
      `/disk/set [find where slot=${quoted(slot)}] ${properties.map((name) => `${name}=no`).join(" ")}`,
    ],
  }),
  autoSharingOff: (): Fix => ({
    commands: ["/disk/settings/set auto-smb-sharing=no auto-media-sharing=no"],
  }),
  ownShare: () => advice("use a pool of its own for directories, or move the images to another one"),
  clusterId: () => advice("set --cluster-id ID"),
  legacySnapshots: () => advice("list them: rds-csi audit --foreign"),
  probeLeftovers: (folder: string) =>
    advice(`rds-csi doctor --probe --base-path ${folder} removes them before it asks anything`),
  recordDamaged: (slot: string): Fix => ({
    commands: [`/disk/set [find where slot=${quoted(slot)}] comment="…"`],
    after: " with its comment from a backup or an /export",
  }),
  hostList: (slot: string): Fix => ({
    before: "if every node may connect: ",
    commands: [`/disk/set [find where slot=${quoted(slot)}] nvme-tcp-server-allow-host-name=""`],
  }),
  exportsLook: (): Fix => ({ commands: ["/disk/print where nvme-tcp-export"] }),
  nvmeSilent: (port: number): Fix => ({
    before: "with each network of NODES: ",
    commands: [letIn(port)],
    after: `${ruleZero}; or set --nvme-address ADDRESS`,
  }),
} as const;

const placeholderRule = `chain=input action=passthrough comment="${group}"`;

/** A router places no rule before a dynamic one. */
const ruleZero = "; if rule 0 is dynamic, add one to each number of place-before";

/** Before all other rules, such as a final drop. */
function letIn(port: number): string {
  return `/ip/firewall/filter/add ${portRule(port)} src-address=NODES action=accept place-before=0`;
}

function portRule(port: number): string {
  return `chain=input comment="${group}" protocol=tcp dst-port=${port}`;
}

/** @param property `available-from` from RouterOS 7.24, `address` before */
function sshOrigins(property: string): string {
  return `/ip/service/set [find where name="ssh"] ${property}=NODES`;
}

/** A router sees a pod's own address where the cluster does not masquerade, such as by Cilium's native routing. */
function originOf(from: string | undefined): string {
  const own = from === undefined ? "this machine's address" : from;
  return `${own}, in a pod without masquerading the pod network`;
}

function userAddress(from: string | undefined): string {
  return `with NODES, which replaces the user's address if it is set, and has to hold ${originOf(from)}: `;
}

/** Leaves a user alone who may come from everywhere. */
function allowOrigins(user: string): string {
  return `/user/set [find where name=${quoted(user)} and address~"."] address=NODES`;
}

function keyImport(user: string, file: string): string {
  return `/user/ssh-keys/import user=${quoted(user)} public-key-file=${file}`;
}
