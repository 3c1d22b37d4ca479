import { type MachineRouter, sharedPool } from "../../machine/router.ts";

/** Where the directories lie on the router. */
const sharedFolder = `${sharedPool}/k8s`;

/** What the chart gets for shared directories. */
export const directoryValues = { directory: { enabled: true, basePaths: [`/${sharedFolder}`] } };

/** Makes the folder of the directories as an administrator does, so that the router can tell what is not the driver's. */
export async function makeSharedFolder(router: MachineRouter): Promise<void> {
  await router.control("/files", {
    method: "POST",
    body: JSON.stringify({ name: sharedFolder, type: "directory" }),
  });
}
