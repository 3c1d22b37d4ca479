import { printableBehaviours } from "../behaviours.ts";
import { hiddenDiskState } from "../menu/disk_menu.ts";
import { json, type Routes, type Simulation } from "./request.ts";
/** Shows the router and its requests. */
export const watchRoutes: Routes = {
  "GET /health": {
    what: "Whether the router is `up` or `down`.",
    handle: (_request, { ssh }) => json({ status: ssh.refusing ? "down" : "up" }),
  },
  "GET /state": {
    what: "Disks, files, subvolumes, pools, exports with whom they let in, sessions.",
    handle: (_request, simulation) => json(stateOf(simulation)),
  },
  "GET /profile": {
    what: "The profile, and every behaviour.",
    handle: (_request, { router }) =>
      json({ profile: router.profile.name, behaviours: printableBehaviours(router.behaviours) }),
  },
  "GET /count": {
    what: "How many execs and statements there were, and bytes printed for them.",
    handle: (_request, { journal }) => json(journal.counts),
  },
  "DELETE /count": {
    what: "Counts from 0.",
    handle: (_request, { journal }) => {
      journal.resetCounts();
      return json(journal.counts);
    },
  },
  "GET /log": {
    what: "Every exec: time, session, command, outcome.",
    handle: (_request, { journal }) => json(journal.list()),
  },
  "DELETE /log": {
    what: "Forgets them.",
    handle: (_request, { journal }) => {
      journal.clear();
      return json([]);
    },
  },
  "GET /violations": {
    what: "What the client must not have done.",
    handle: (_request, { violations }) => json(violations.list()),
  },
  "DELETE /violations": {
    what: "Forgets that.",
    handle: (_request, { violations }) => {
      violations.clear();
      return json([]);
    },
  },
};

/** The whole state of a router, under the router's own names. */
export function stateOf({ router, menus, ssh }: Simulation): Record<string, unknown> {
  const asValues = (path: string) => menus.get(path)?.rows().map((row) => row.asValue()) ?? [];
  const disks = router.disks.list();
  return {
    disks: asValues("disk").map((record, index) => ({ ...record, ...hiddenDiskState(disks[index]!) })),
    files: asValues("file"),
    subvolumes: menus.get("disk/btrfs/subvolume")?.rows()
      .filter((row) => row.value("default") !== true).map((row) => row.asValue()) ?? [],
    pools: menus.get("disk")?.rows()
      .filter((row) => row.value("mounted") === true).map((row) => row.asValue()) ?? [],
    exports: router.exports.list(),
    access: router.exports.list().map((nqn) => ({ nqn, ...router.exports.accessOf(nqn) })),
    nvmePort: router.exports.listens ? "open" : "closed",
    partial: router.files.list().filter((file) => router.files.isPartial(file)).map(({ path }) => path),
    sessions: ssh.sessions,
    uptimeMs: router.system.uptimeMs,
    profile: router.profile.name,
  };
}
