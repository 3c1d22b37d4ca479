// Connects and mounts a volume by hand, like an administrator: the driver's work on a node is compared with it.
import { mkfsExt4Arguments } from "../../../src/filesystem/mkfs_command.ts";
import { hostIdentityOf } from "../../../src/volume/model/host/identity.ts";
import { quote } from "./agent.ts";
import type { Guest } from "./guest.ts";
import type { GuestVolume } from "./volume.ts";

/** Where a volume is mounted by hand, in its own folder. */
const mounts = "/mnt/by-hand";

/** The beginning of every script; for bash, whose clock needs no process. */
const preamble = `set -e
shopt -s extglob nullglob
now() { at=\${EPOCHREALTIME/[.,]/}; }
find_device() {
  local folder name
  for folder in /sys/class/nvme-subsystem/nvme-subsys*; do
    read -r name < $folder/subsysnqn || continue
    [ "$name" = "$nqn" ] || continue
    for name in $folder/nvme+([0-9])n1; do
      device=/dev/\${name##*/}
      [ -b $device ] && return
    done
  done
  return 1
}`;

/** A published volume that is not staged, used through shell commands. */
export class VolumeByHand {
  readonly mountPoint: string;
  readonly #guest: Guest;
  readonly #environment: Readonly<Record<string, string>>;

  /** The node's identity and the options of the connection are the driver's defaults. */
  constructor(guest: Guest, volume: GuestVolume, nodeId: string) {
    const { nqn = "", nvmeAddress: address = "", nvmePort: port = "" } = volume.publishContext(nodeId);
    const { hostNqn, hostId } = hostIdentityOf(nodeId);
    this.mountPoint = `${mounts}/${volume.id}`;
    this.#guest = guest;
    this.#environment = { nqn, address, port, hostNqn, hostId, folder: this.mountPoint };
  }

  /**
   * Connects and waits for the device; with a file system, probes it, makes or checks it if requested, and mounts it.
   * Returns milliseconds.
   */
  async stage(use: "blank" | "formatted" | "checked" | "block"): Promise<number> {
    const make = ["mkfs.ext4", ...mkfsExt4Arguments("$device", { label: undefined, extra: [], lazy: true })];
    const words = make.map((word) => word === "$device" ? "$device" : quote(word)).join(" ");
    const prepare = { blank: words, checked: "e2fsck -p $device > /dev/null", formatted: "", block: "" }[use];
    const mount = use === "block" ? "" : `blkid -p $device > /dev/null || [ $? = 2 ]
         ${prepare}
         mount -t ext4 -o rw,errors=remount-ro $device "$folder"`;
    return await this.#timed(
      `nvme connect -t tcp -a $address -s $port -n $nqn --hostnqn=$hostNqn --hostid=$hostId \\
         --ctrl-loss-tmo=1800 --reconnect-delay=5 > /dev/null
       until find_device; do sleep 0.01; done
       ${mount}`,
    );
  }

  /** Unmounts the volume if it is mounted, and disconnects. Returns milliseconds. */
  async unstage(use: "mounted" | "block"): Promise<number> {
    return await this.#timed(
      `${use === "mounted" ? 'umount "$folder"' : ""}
       nvme disconnect -n $nqn > /dev/null`,
    );
  }

  /** The device of the connected volume. */
  async device(): Promise<string> {
    return await this.#bash("find_device; echo $device");
  }

  async #timed(script: string): Promise<number> {
    const printed = await this.#bash(
      `mkdir -p "$folder"; now; begun=$at\n${script}\nnow; echo $((at - begun))`,
    );
    return Number(printed.trim()) / 1000;
  }

  async #bash(script: string): Promise<string> {
    return (await this.#guest.sh(`exec bash -c ${quote(`${preamble}\n${script}`)}`, {
      env: { ...this.#environment },
    })).trim();
  }
}
