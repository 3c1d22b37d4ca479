import type { Random } from "../../volume/ports/system.ts";
import type { RecordValue } from "../value.ts";

/** What a stripe over mirrors says of itself: RDS2216 with RouterOS 7.24.4, `/disk print detail`. */
export function stripe(random: Random): RecordValue {
  return { ...array("0", 4, random), "raid-chunk-size": "256K" };
}

/** What one of its mirrors says. */
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

/** Four words of eight digits, as the kernel's arrays write theirs. */
function raidUuid(random: Random): string {
  const hex = Array.from(random.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.match(/.{8}/g)!.join("-");
}
