import type { Behaviours } from "../behaviours.ts";
import type { RecordValue, Value } from "../value.ts";

/** A drive's values of SMART in good health. */
const healthy: RecordValue = {
  "io-errors": 0n,
  "temperature": 38n,
  "critical-warning": "",
  "available-spare": 100n,
  "available-spare-threshold": 10n,
  "percentage-used": 1n,
  "warning-temperature": 82n,
  "critical-temperature": 85n,
};

/** The names of SMART, and of members of an array. */
export const smartNames: readonly string[] = Object.keys(healthy);
export const memberNames: readonly string[] = ["raid-role", "raid-member-failed", "raid-member-state"];

/** The properties of a healthy drive in an array. */
export function healthyMember(role: number): RecordValue {
  return { ...healthy, "raid-member-failed": false, "raid-member-state": `${role}:in_sync` };
}

/** Whether a router knows a property of its hardware. */
export function isKnownName(name: string, { hardwareNames }: Pick<Behaviours, "hardwareNames">): boolean {
  if (hardwareNames === "all") return true;
  return !smartNames.includes(name) && (hardwareNames === "no-smart" || !memberNames.includes(name));
}

/** Without the properties that the router does not know. */
export function knownOf(values: RecordValue, behaviours: Pick<Behaviours, "hardwareNames">): RecordValue {
  if (behaviours.hardwareNames === "all") return values;
  return Object.fromEntries(
    Object.entries(values).filter(([name]): boolean => isKnownName(name, behaviours)),
  ) as Record<string, Value>;
}
