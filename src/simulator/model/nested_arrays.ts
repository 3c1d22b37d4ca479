import type { Random } from "../../volume/ports/system.ts";
import type { RecordValue } from "../value.ts";

/** The properties of a stripe over mirrors: RDS2216 with RouterOS 7.24.4, `/disk print detail`. */
export function stripe(random: Random): RecordValue {
  return { ...array("0", 4, random), "raid-chunk-size": "256K" };
}

/** The properties of one of its mirrors. */
export function mirror(role: number, random: Random): RecordValue {
  return {
    ...array("1", 2, random),
    "raid-role": BigInt(role),
    "raid-member-failed": false,
    "raid-member-state": `${role}:in_sync`,
    state: "clean",
  };
}

function array(type: "0" | "1", devices: number, random: Random): RecordValue {
  return {
    "raid-type": type,
    "raid-device-count": BigInt(devices),
    "raid-max-component-size": "none",
    "raid-uuid": raidUuid(random),
  };
}

/** Four groups of eight digits, the form of the kernel's arrays. */
function raidUuid(random: Random): string {
  return random.bytes(16).toHex().match(/.{8}/g)!.join("-");
}
