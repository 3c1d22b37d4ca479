import type { HardwareDisk, HardwareFinding, JudgedHardware } from "../../volume/model/health/hardware.ts";
import { poolsOn } from "../../volume/rules/health/hardware.ts";
import { ago, badge, type Html, markup, table } from "./html.ts";

/** The arrays and drives of a router; nothing where nobody has read them. */
export function hardwareBlock(read: JudgedHardware | undefined, nowMs: number): Html | undefined {
  if (read === undefined) return undefined;
  const { reading, findings, atMs } = read;
  const { disks } = reading;
  // Their drives were listed when the fault was seen.
  const unlisted = findings.filter(({ slot }) => !disks?.some((disk) => disk.slot === slot));
  const slots = new Map(unlisted.map(({ slot, model, serial }) => [slot, { slot, model, serial }]));
  return markup`<h3>Arrays and drives <small>read ${ago(atMs, nowMs)}</small></h3>
${
    table<HardwareDisk>([...disks ?? [], ...slots.values()], [
      { head: "Slot", cell: ({ slot }) => slot },
      { head: "Model", cell: ({ model, serial }) => markup`${model} <small>${serial}</small>` },
      { head: "Pool", cell: ({ slot }) => poolsOn(reading, slot).join(", ") },
      { head: "State", cell: (disk) => stateOf(disk, read) },
      { head: "Used", form: "number", cell: ({ usedPercent }) => shown(usedPercent, "%") },
      { head: "Spare", form: "number", cell: ({ sparePercent }) => shown(sparePercent, "%") },
      { head: "Temperature", form: "number", cell: ({ celsius }) => shown(celsius, "°C") },
      {
        head: "Problems",
        form: "message",
        cell: ({ slot }) => faults(findings.filter((finding) => finding.slot === slot)),
      },
    ], disks === undefined ? "The router does not report them." : "The router reports none.")
  }`;
}

function shown(value: number | undefined, unit: string): string {
  return value === undefined ? "–" : `${value} ${unit}`;
}

/** What a Btrfs file system does shows at the disk with its mount. */
function stateOf(
  { slot, state, memberState, mountPoint }: HardwareDisk,
  { reading }: JudgedHardware,
): string {
  const activity = !mountPoint ? [] : (reading.filesystems ?? [])
    .filter(({ devices = [] }) => devices.some((device) => device.slot === slot))
    .flatMap((filesystem) => filesystem.activity);
  return [state ?? memberState ?? "", ...activity].filter((part) => part !== "").join(", ");
}

function faults(findings: readonly HardwareFinding[]): Html {
  if (findings.length === 0) return markup`<span class="quiet">no problem known</span>`;
  return markup`${
    findings.map(({ severity, reason, message }) =>
      markup`<div>${badge(severity === "critical" ? "bad" : "warn", reason)} ${message}</div>`
    )
  }`;
}
