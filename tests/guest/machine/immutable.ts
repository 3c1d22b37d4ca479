import type { Guest } from "../kit/guest.ts";

/** Modules that the kernel would load when they are needed, by modprobe: an immutable host has them from its start. */
export const preloaded: readonly string[] = [
  ...["ext4", "xfs", "overlay", "dm-mod", "bridge", "veth"],
  ...["nf_tables", "nft_chain_nat", "nft_nat", "nft_masq"],
];

/** Folders that can be written to, as on Talos; so can /run and /tmp, which are in memory. */
const writable = ["/var", "/etc/kubernetes", "/opt"];

/** Programs by which a host helps itself with devices and modules. */
const tools = ["nvme", "modprobe", "insmod", "rmmod", "lsmod", "modinfo", "depmod", "kmod", "udevadm"];

/** Makes the root of a guest read-only, without tools of its own; it cannot be booted again. */
export async function makeImmutable(guest: Guest): Promise<void> {
  await guest.sh(
    `set -e
     for folder in ${writable.join(" ")}; do mount --rbind $folder $folder; done
     for tool in ${tools.join(" ")}; do rm -f /usr/bin/$tool /usr/sbin/$tool; done
     mount -o remount,bind,ro /
     for tool in ${tools.join(" ")}; do if command -v $tool; then exit 1; fi; done
     for folder in / /usr /etc; do if touch $folder/x 2>/dev/null; then exit 1; fi; done
     for folder in ${writable.join(" ")}; do touch $folder/x; rm $folder/x; done`,
  );
}
