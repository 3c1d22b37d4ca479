import { printableAnswers } from "../../router_profile/answers.ts";
import { parseProfile } from "../../router_profile/profile.ts";
import { parseKnobs } from "../behaviours.ts";
import { getProfile } from "../profile.ts";
import type { Simulation } from "../simulation.ts";
import { BadRequest, json, type JsonObject, parseJson } from "./request.ts";
import type { Route } from "./routes.ts";

/** Choosing what kind of router it is. */
export const settingsRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "profile",
    named: false,
    what: "The profile, and every knob.",
    handle: (_request, simulation) => profileOf(simulation),
  },
  {
    method: "PUT",
    path: "profile",
    named: false,
    what:
      "Becomes another kind of router: a name, or `profile` and `knobs`; `knobs` alone are turned alone. Takes " +
      "a profile file too.",
    handle: putProfile,
  },
];

/** Takes a profile's name, bare or as JSON, or `{"profile": …, "knobs": {…}}`; knobs alone are turned alone. */
async function putProfile(request: Request, simulation: Simulation): Promise<Response> {
  const text = (await request.text()).trim();
  const body = /^[{["]/.test(text) ? parseJson(text) : text;
  const given: JsonObject = typeof body === "string" ? { profile: body } : asObject(body);
  const { profile: name, knobs = {}, format } = given;
  try {
    if (format === undefined) {
      const profile = name === undefined ? undefined : getProfile(String(name));
      simulation.router.configure(profile, parseKnobs(asObject(knobs)));
    } else simulation.router.configure(parseProfile(text), {});
  } catch (error) {
    if (error instanceof RangeError) throw new BadRequest(error.message);
    throw error;
  }
  return profileOf(simulation);
}

function profileOf({ router }: Simulation): Response {
  return json({ profile: router.profile.name, knobs: printableAnswers(router.knobs) });
}

function asObject(value: unknown): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new BadRequest("The body must be the name of a profile, or an object with profile and knobs.");
  }
  return value as JsonObject;
}
