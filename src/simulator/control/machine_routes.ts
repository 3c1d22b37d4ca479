import type { PackageState, Router } from "../model/router.ts";
import type { SshService } from "../ssh/server.ts";
import { someoneElse } from "../console/console.ts";
import {
  assertOnly,
  BadRequest,
  json,
  type JsonObject,
  NotFound,
  readCount,
  readObject,
  readText,
  readTruth,
  type Routes,
  type Simulation,
} from "./request.ts";
import { generateHostKey, readHostKey } from "../ssh/host_key.ts";
import type { Policies } from "../ssh/users.ts";

/** Options of a reboot. */
interface RebootOptions {
  /** How long connections are refused, in milliseconds. */
  readonly downMs: number;
  /** How much later than the router itself its file disks come back, in milliseconds. */
  readonly disksLateMs: number;
  /** Configuration of the last so many milliseconds was not saved yet, and is lost. */
  readonly loseLastMs: number;
  /** Whether the NVMe port listens as soon as the router is up, or only when the exports are back. */
  readonly nvmePort: "before" | "after";
  /** Whether exports come back as the namespaces that they were. */
  readonly bootIdentity: "kept" | "new";
}

/**
 * Reboots the router: sessions and exports end, the latest configuration may be lost, ids change, and file disks come
 * back late, in no particular order. Files stay as they are.
 */
function reboot(router: Router, ssh: SshService, options: RebootOptions): void {
  const { clock, disks, exports, files, random, system } = router;
  const boot = ++router.boots;
  ssh.reset(true);
  exports.listen(false);
  exports.powerOff(options.bootIdentity);
  disks.hideFiles("late", true);
  files.abandonCopies();
  if (options.loseLastMs > 0) disks.forgetSince(clock.now() - options.loseLastMs);
  disks.renumber((disk) => disk.filePath === "" ? 0 : 1 + random.fraction());
  system.boot(options.downMs);
  // A reboot during a reboot starts over; the timers of the first one are void then.
  const later = (ms: number, act: () => void) =>
    clock.timer(ms, () => {
      if (router.boots === boot) act();
    });
  later(options.downMs, () => {
    if (options.nvmePort === "before") exports.listen(true);
    ssh.resume();
  });
  later(options.downMs + options.disksLateMs, () => {
    disks.hideFiles("late", false);
    exports.listen(true);
  });
}

/** Events of the whole router. */
export const machineRoutes: Routes = {
  "POST /console": {
    what: "Runs `command` on the router as another user: it is not counted, and breaks no rule.",
    handle: postConsole,
  },
  "POST /reboot": {
    what:
      "Reboots: `downMs` (connections refused), `disksLateMs` (default: the behaviour), `loseLastMs` (configuration " +
      "lost), `nvmePort` (`before` or `after` the exports are back), `bootIdentity` (`kept` or `new`; default: the " +
      "behaviour).",
    handle: postReboot,
  },
  "PUT /package": {
    what: "Makes `rose-storage` `installed`, `disabled` or `missing` (`state`).",
    handle: putPackage,
  },
  "PATCH /users/…": {
    what:
      "Gives a user the policies `ssh`, `read`, `write`, or takes them away; open sessions feel it too. New logins take " +
      "another `password`, or one public key (`authorizedKey`).",
    handle: patchUser,
  },
  "POST /host-key": {
    what: "Shows new connections another host key: a new one, or `privateKey`.",
    handle: postHostKey,
  },
};

/** Runs a command as a user whose commands are not checked. */
async function postConsole(request: Request, { console }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["command"]);
  const { output, refusal } = await console.execute(readText(body, "command"), someoneElse);
  return json({ output, refusal: refusal ?? null });
}

async function postReboot(request: Request, { router, ssh }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["downMs", "disksLateMs", "loseLastMs", "nvmePort", "bootIdentity"]);
  const options = {
    downMs: readCount(body, "downMs", 0, 0),
    disksLateMs: readCount(body, "disksLateMs", 0, router.behaviours.disksLate),
    loseLastMs: readCount(body, "loseLastMs", 0, 0),
    nvmePort: readWord(body, "nvmePort", ["before", "after"], "before"),
    bootIdentity: readWord(body, "bootIdentity", ["kept", "new"], router.behaviours.bootIdentity),
  };
  reboot(router, ssh, options);
  return json(options);
}

async function putPackage(request: Request, { router }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["state"]);
  router.setRose(readWord<PackageState>(body, "state", ["installed", "disabled", "missing"]));
  return json(router.packages);
}

async function patchUser(request: Request, { users }: Simulation, name: string): Promise<Response> {
  const user = users.find(name);
  if (user === undefined) throw new NotFound(`There is no user ${name}.`);
  const body = await readObject(request);
  assertOnly(body, ["ssh", "read", "write", "password", "authorizedKey"]);
  const policies: Policies = {
    mayLogIn: readTruth(body, "ssh", user.mayLogIn ?? true),
    mayRead: readTruth(body, "read", user.mayRead ?? true),
    mayWrite: readTruth(body, "write", user.mayWrite ?? true),
  };
  const password = readText(body, "password", "");
  const key = readText(body, "authorizedKey", "");
  users.change(user, {
    ...policies,
    ...(password === "" ? {} : { password }),
    ...(key === "" ? {} : { authorizedKeys: [key] }),
  });
  return json({ name, ssh: policies.mayLogIn, read: policies.mayRead, write: policies.mayWrite });
}

async function postHostKey(request: Request, { ssh }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["privateKey"]);
  const given = readText(body, "privateKey", "");
  try {
    ssh.changeHostKey(given === "" ? generateHostKey() : readHostKey(given));
  } catch (error) {
    if (error instanceof RangeError) throw new BadRequest(error.message);
    throw error;
  }
  return json({ hostKey: ssh.hostKey.publicLine });
}

function readWord<Word extends string>(
  body: JsonObject,
  name: string,
  words: readonly Word[],
  otherwise?: Word,
): Word {
  const text = readText(body, name, otherwise);
  const word = words.find((candidate) => candidate === text);
  if (word === undefined) throw new BadRequest(`${name} must be one of ${words.join(", ")}.`);
  return word;
}
