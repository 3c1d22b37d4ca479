import { type Fault, type FaultAction, faultActions } from "../faults.ts";
import { parseKnobs, printableKnobs } from "../knobs.ts";
import { getProfile } from "../profile.ts";
import { reboot } from "../reboot.ts";
import type { Simulation } from "../simulation.ts";
import {
  assertOnly,
  BadRequest,
  json,
  type JsonObject,
  parseJson,
  readCount,
  readObject,
  readText,
} from "./request.ts";
import type { Route } from "./routes.ts";

/** Choosing what kind of router it is, and what goes wrong with it. */
export const settingsRoutes: readonly Route[] = [
  { method: "GET", path: "profile", named: false, handle: (_request, simulation) => profileOf(simulation) },
  { method: "PUT", path: "profile", named: false, handle: putProfile },
  { method: "GET", path: "faults", named: false, handle: (_request, { faults }) => json(faults.list()) },
  { method: "POST", path: "faults", named: false, handle: postFault },
  {
    method: "DELETE",
    path: "faults",
    named: false,
    handle: (_request, { faults }) => {
      faults.clear();
      return json([]);
    },
  },
  { method: "POST", path: "reboot", named: false, handle: postReboot },
];

/** Takes a profile's name, bare or as JSON, or `{"profile": …, "knobs": {…}}`; knobs alone are turned alone. */
async function putProfile(request: Request, simulation: Simulation): Promise<Response> {
  const text = (await request.text()).trim();
  const body = /^[{["]/.test(text) ? parseJson(text) : text;
  const { profile: name, knobs = {} } = typeof body === "string" ? { profile: body } : asObject(body);
  try {
    const profile = name === undefined ? undefined : getProfile(String(name));
    simulation.router.configure(profile, parseKnobs(asObject(knobs)));
  } catch (error) {
    if (error instanceof RangeError) throw new BadRequest(error.message);
    throw error;
  }
  return profileOf(simulation);
}

async function postFault(request: Request, { faults }: Simulation): Promise<Response> {
  faults.arm(readFault(await readObject(request)));
  return json(faults.list(), 201);
}

/** @throws {BadRequest} when a part of it makes no sense. */
export function readFault(body: JsonObject): Fault {
  assertOnly(body, ["match", "nth", "times", "action", "value"]);
  const { value } = body;
  const action = readText(body, "action") as FaultAction;
  if (!faultActions.includes(action)) {
    throw new BadRequest(`There is no action ${action}; there are ${faultActions.join(", ")}.`);
  }
  if (value !== undefined && typeof value !== "string" && typeof value !== "number") {
    throw new BadRequest("value must be a text or a number.");
  }
  const counts = (action === "truncate" || action === "delay") && value !== undefined;
  if (counts && !(Number.isSafeInteger(Number(value)) && Number(value) >= 0)) {
    throw new BadRequest(`The value of ${action} must be a whole number, not negative.`);
  }
  return {
    match: readPattern(body),
    nth: readCount(body, "nth", 1, 1),
    times: readCount(body, "times", 1, 1),
    action,
    value,
  };
}

async function postReboot(request: Request, { router, ssh }: Simulation): Promise<Response> {
  const body = await readObject(request);
  assertOnly(body, ["downMs", "disksLateMs", "loseLastMs"]);
  const options = {
    downMs: readCount(body, "downMs", 0, 0),
    disksLateMs: readCount(body, "disksLateMs", 0, 0),
    loseLastMs: readCount(body, "loseLastMs", 0, 0),
  };
  reboot(router, ssh, options);
  return json(options);
}

function profileOf({ router }: Simulation): Response {
  return json({ profile: router.profile.name, knobs: printableKnobs(router.knobs) });
}

function readPattern(body: JsonObject): string {
  const match = readText(body, "match", "");
  try {
    new RegExp(match);
  } catch (error) {
    throw new BadRequest(`match is no regular expression: ${error instanceof Error ? error.message : error}`);
  }
  return match;
}

function asObject(value: unknown): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BadRequest("The body must be the name of a profile, or an object with profile and knobs.");
  }
  return value as JsonObject;
}
