/**
 * Gives up what a controller does not need: it runs no tool and calls no library. From then on not even this process
 * can.
 */
export async function dropControllerPrivileges(): Promise<void> {
  await Deno.permissions.revoke({ name: "run" });
  await Deno.permissions.revoke({ name: "ffi" });
}
