import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Finding, fine, warning } from "../../volume/model/finding.ts";

const check = "nvme-timeouts";

/** Seconds that the driver gives a lost connection unless a StorageClass says otherwise. */
const usualCtrlLossTmo = 1800;

/** What the kernel does when one of the driver's connections is lost, one finding for all of them. */
export function checkTimeouts(files: KernelFiles, nqnPrefix: string): Finding {
  const controllers = readControllers(files, nqnPrefix);
  if (controllers.length === 0) return fine(check, "no connection of this driver's");
  const described = controllers.map(({ name, ctrlLossTmo, reconnectDelay, fastIoFailTmo }) =>
    `${name} ctrl_loss_tmo=${ctrlLossTmo} reconnect_delay=${reconnectDelay} fast_io_fail_tmo=${fastIoFailTmo}`
  ).join(", ");
  const short = controllers.filter(({ ctrlLossTmo }) => isShort(ctrlLossTmo));
  if (short.length === 0) return fine(check, described);
  return warning(
    check,
    `${described}; below ${usualCtrlLossTmo} s, or never given up, is right only where a StorageClass says so`,
    "look at ctrlLossTmo of the volume's StorageClass; it takes effect when the volume is staged again",
  );
}

interface ControllerTimeouts {
  readonly name: string;
  readonly ctrlLossTmo: string;
  readonly reconnectDelay: string;
  readonly fastIoFailTmo: string;
}

/** `off` is never: whoever writes then waits for ever for a router that does not come back. */
function isShort(ctrlLossTmo: string): boolean {
  return !/^[0-9]+$/.test(ctrlLossTmo) || Number(ctrlLossTmo) < usualCtrlLossTmo;
}

function readControllers(files: KernelFiles, nqnPrefix: string): readonly ControllerTimeouts[] {
  const folder = "/sys/class/nvme";
  const names = files.list(folder) ?? [];
  const read = (name: string, attribute: string) =>
    files.readText(`${folder}/${name}/${attribute}`)?.trim() ?? "?";
  return names.filter((name) => read(name, "subsysnqn").startsWith(`${nqnPrefix}:`)).toSorted().map((
    name,
  ) => ({
    name,
    ctrlLossTmo: read(name, "ctrl_loss_tmo"),
    reconnectDelay: read(name, "reconnect_delay"),
    fastIoFailTmo: read(name, "fast_io_fail_tmo"),
  }));
}
