import { quote } from "../kit/agent.ts";
import type { Guest } from "../kit/guest.ts";

/** Longest until a container gets to where it is to stand still, in seconds. */
const limitSeconds = 300;

/** Where a driver stages and publishes the only volume of its node, each as a test of what {@linkcode script} sees. */
export const points = {
  "before it connects": "$mkfs && ! $nvme",
  "when it has connected": "$nvme == live && $mkfs == none && ! $mounted && $tools != *mkfs*",
  "while blkid looks": "$tools == *blkid* && $mkfs == none",
  "while mkfs writes": "$tools == *mkfs.* && $written -gt 0",
  "between mkfs and mount": "$mkfs == done && ! $mounted",
  "while e2fsck runs": "$tools == *e2fsck*",
  "while mount runs": '" $tools " == *" mount "* && ! $target',
  "when it has mounted": "$mounted && $staged == false",
  "before it binds": "$target && ! $bound",
  "when it has bound": "$bound",
} as const;
/** One of {@linkcode points}. */
export type Point = keyof typeof points;

/** What was seen of a container that stands still. */
export interface Sight {
  /** How far mkfs came by the driver's state file. */
  readonly mkfs: string;
  /** All of it for people. */
  readonly text: string;
}

/**
 * Lets a driver's container run for a few milliseconds at a time, and looks at it while all its processes are frozen, until
 * it has come to a point. There it stands still. So nothing of the driver is changed to stop it there, and nothing
 * that is seen can be over when it is seen.
 *
 * @param meanwhile what leads it there; called once it is watched
 * @throws {Error} when it was never seen there although the volume is bound
 */
export async function stopAt(
  guest: Guest,
  container: string,
  point: Point,
  stateFolder: string,
  meanwhile: () => Promise<void>,
): Promise<Sight> {
  const watched = Promise.withResolvers<void>();
  const onLine = (line: string) => line === "watched" && watched.resolve();
  const command = `exec bash -c ${quote(script(points[point]))} bash ${quote(container)} ${
    quote(stateFolder)
  }`;
  const watching = guest.run(command, { limitSeconds, onLine });
  // A script that ends before it watches would be waited for all the same.
  void watching.then(
    ({ stderr }) => watched.reject(new Error(`it was not watched: ${stderr}`)),
    watched.reject,
  );
  const [{ status, stdout, stderr }] = await Promise.all([watching, watched.promise.then(meanwhile)]);
  const text = stdout.split("\n").at(-1) ?? "";
  if (status !== 0) throw new Error(`it was not seen ${point}: ${text}\n${stderr}`);
  return { mkfs: /mkfs=(\w*)/.exec(text)?.[1] ?? "", text };
}

/**
 * All of it is the shell's own: another program would take longer to start than a step of the driver takes. The kernel's
 * list of mounts is too long for that as well. Before there is a connection nothing is frozen but at the point: a connect
 * that is interrupted begins anew, and would never end.
 */
const script = (test: string) =>
  `shopt -s nullglob
cgroup=$(find /sys/fs/cgroup -type d -name "$1")
[[ $cgroup ]] || { echo "no control group" >&2; exit 1; }
exec {clock}<> <(:)

freeze() {
  echo 1 >"$cgroup/cgroup.freeze"
  until read -r -d '' events <"$cgroup/cgroup.events"; [[ $events == *"frozen 1"* ]]; do :; done
}

field() {
  local pattern="\\"$1\\": \\"?([^\\",]+)"
  [[ $state =~ $pattern ]] && REPLY=\${BASH_REMATCH[1]} || REPLY=
}

see() {
  mkfs= staged= target= nvme= tools= written=0 mounted= bound=
  for file in "$2"/volumes/*.json; do
    read -r -d '' state <"$file"
    field filesystem && mkfs=$REPLY
    field staged && staged=$REPLY
    field stagingPath && staging=$REPLY
    field targetPath && target=$REPLY
  done
  for file in /sys/class/nvme/*/state; do read -r nvme <"$file"; done
  for file in /sys/fs/{ext4,xfs}/nvme*; do mounted=yes; done
  [[ $target && ( -b $target || $target -ef $staging ) ]] && bound=yes
  while read -r pid; do
    read -r tool <"/proc/$pid/comm"
    [[ $tool == rds-csi ]] || tools+="\${tools:+ }$tool"
    [[ $tool == mkfs.* ]] || continue
    read -r -d '' io <"/proc/$pid/io"
    [[ $io =~ wchar:\\ ([0-9]+) ]] && written=\${BASH_REMATCH[1]}
  done <"$cgroup/cgroup.procs"
  said="mkfs=$mkfs staged=$staged target=\${target:+known} nvme=$nvme mounted=$mounted bound=$bound"
  said+=" tools=[$tools] written=$written looks=$((++looks))"
}

echo watched
while :; do
  [[ $nvme != live ]] || freeze
  see "$@"
  if [[ ${test} ]]; then
    freeze
    see "$@"
    if [[ ${test} ]]; then echo "$said"; exit 0; fi
  fi
  echo 0 >"$cgroup/cgroup.freeze"
  if [[ $bound ]]; then echo "$said"; exit 1; fi
  read -t 0.025 -u $clock
done`;
