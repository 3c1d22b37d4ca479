import type { ToolResult } from "../../host/spawn.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { complaint } from "../../host/processes.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { PathAddress } from "./nvme_tool.ts";

/** Whether the kernel has that path already; the result does not say whose it is, and in what state. */
export function isAlreadyConnected(result: ToolResult): boolean {
  return /already connected|operation already in progress/i.test(result.stderr + result.stdout);
}

/**
 * Says why a connect failed, and what a person can do about it: `precondition` where the kernel has no initiator,
 * otherwise `unavailable`.
 */
export function connectFailure(
  files: KernelFiles,
  nqn: string,
  path: PathAddress,
  result: ToolResult,
): VolumeError {
  const facts = `nqn=${nqn} address=${path.address} port=${path.port}: ${complaint(result)}`;
  const missing = missingTransport(files);
  if (missing !== undefined) {
    return new VolumeError(
      "precondition",
      `Cannot connect because this node's kernel cannot do NVMe/TCP: ${missing}: ${facts}; ${transportAdvice}`,
    );
  }
  const said = result.stderr + result.stdout;
  const [, reason, advice] = reasons.find(([form]) => form.test(said)) ?? [undefined, "the kernel fails", ""];
  return new VolumeError(
    "unavailable",
    `Cannot connect because ${reason}: ${facts}${advice === "" ? "" : `; ${advice}`}`,
  );
}

/** A target that accepts connections, or not even those, and says nothing: the kernel was not let wait for it. */
export function silentTarget(nqn: string, { address, port }: PathAddress): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot connect because the target does not answer: nqn=${nqn} address=${address} port=${port}; ` +
      "check that the router is up, and that this node reaches its NVMe/TCP address",
  );
}

/** A target that answers, and does not offer the subsystem to this node there. */
export function notOffered(nqn: string, { address, port }: PathAddress): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot connect because the target does not offer the subsystem there: nqn=${nqn} address=${address} port=${port}`,
  );
}

/** A connect that waited for the one that the kernel was at. */
export function kernelBusy(nqn: string, { address, port }: PathAddress, busy: string): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot connect because the kernel is still at another connect: nqn=${nqn} address=${address} port=${port} ` +
      `connecting=${busy}; it makes one connection at a time, and gives up a silent target after about a minute`,
  );
}

/** Advice for a kernel without NVMe/TCP. */
export const transportAdvice =
  "the host has to load the module: `modprobe nvme-tcp` and a line `nvme-tcp` in /etc/modules-load.d/, or on Talos " +
  "Linux `nvme_tcp` in machine.kernel.modules";

/** Says that the kernel has no NVMe fabrics; undefined when it has, because it then loads the transport on demand. */
export function missingFabrics(files: KernelFiles): string | undefined {
  return files.info("/dev/nvme-fabrics") === undefined ? "there is no /dev/nvme-fabrics" : undefined;
}

/** Says which part of the initiator is missing; undefined when all are there. */
export function missingTransport(files: KernelFiles): string | undefined {
  const fabrics = missingFabrics(files);
  if (fabrics !== undefined) return fabrics;
  if (files.list("/sys/module/nvme_tcp") === undefined) return "the module nvme_tcp is not loaded";
  return undefined;
}

/** By the C library's text for the kernel's error. */
const reasons: readonly (readonly [form: RegExp, reason: string, advice: string])[] = [
  [
    /connection refused/i,
    "no service listens there",
    "check that the router exports the volume at this port, and that no firewall refuses it",
  ],
  [
    /timed out|no route to host|unreachable|host is down/i,
    "the address cannot be reached",
    "check that this node reaches the router's NVMe/TCP address",
  ],
  [
    /input\/output error|invalid data parameter|connect command failed|access denied|not allowed/i,
    "the target refuses",
    "it does not export this NQN there, or its list of hosts lacks this node's: the node's kernel log says which",
  ],
  [
    /invalid argument/i,
    "the kernel refuses",
    "see its log: perhaps an option, or a second path to a subsystem that takes only one",
  ],
  [/connection reset|broken pipe|protocol/i, "the target broke off", "try again"],
];
