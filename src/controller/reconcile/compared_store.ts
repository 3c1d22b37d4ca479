import type { VolumeStore } from "../../volume/ports/store.ts";
import type { RouterBoots } from "./boots.ts";

/**
 * The router as calls see it. Whatever shows records waits for the round after a boot; the loop itself asks the router
 * directly. Changes do not wait: each is conditional on a record, which was read in this way, or written by this process.
 */
export function comparedStore(store: VolumeStore, boots: RouterBoots): VolumeStore {
  return {
    get lastPools() {
      return store.lastPools;
    },
    view: (id, filePrefix, context, folder) =>
      boots.read(() => store.view(id, filePrefix, context, folder), context),
    createView: (wanted, context) => boots.read(() => store.createView(wanted, context), context),
    sourceView: (wanted, source, context) =>
      boots.read(() => store.sourceView(wanted, source, context), context),
    inventory: (context) => boots.read(() => store.inventory(context), context),
    state: (context) => store.state(context),
    poolHealth: (context) => store.poolHealth(context),
    files: (part, context) => store.files(part, context),
    filesAt: (paths, context) => store.filesAt(paths, context),
    commit: (write, premises, context) => store.commit(write, premises, context),
    removeImage: (location, part, context) => store.removeImage(location, part, context),
    addSubvolume: (subvolume, part, context) => store.addSubvolume(subvolume, part, context),
    copyFile: (from, to, context, makeFolder) => store.copyFile(from, to, context, makeFolder),
    renameFile: (from, to, guard, part, context) => store.renameFile(from, to, guard, part, context),
    changeFolders: (change, context) => store.changeFolders(change, context),
    probe: (context) => store.probe(context),
  };
}
