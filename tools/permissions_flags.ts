// Prints the permission flags of a role for running the sources: `deno run -A tools/permissions_flags.ts demo`.

import { permissionFlags, PERMISSIONS, type Permissions } from "./permissions.ts";
import { complain, print } from "./print.ts";

/** The executable contains its proto file; the sources read it from the project, so they have to be started there. */
export function permissionsFromSources(permissions: Permissions): Permissions {
  return { ...permissions, read: [...permissions.read, "proto"] };
}

if (import.meta.main) {
  const permissions = Object.entries(PERMISSIONS).find(([role]) => role === Deno.args[0])?.[1];
  if (permissions === undefined) {
    complain(`usage: permissions_flags.ts ${Object.keys(PERMISSIONS).join("|")}`);
    Deno.exit(2);
  }
  print(permissionFlags(permissionsFromSources(permissions)).join(" "));
}
