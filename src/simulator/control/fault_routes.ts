import {
  type Fault,
  type FaultAction,
  faultActions,
  faultKinds,
  type Faults,
  type FaultValue,
} from "../faults.ts";
import {
  assertOnly,
  BadRequest,
  json,
  type JsonObject,
  readCount,
  readObject,
  readPattern,
  readText,
  type Routes,
  type Simulation,
} from "./request.ts";
/** Defines faults and the commands that they affect. */
export const faultRoutes: Routes = {
  "GET /faults": {
    what: "The faults that are armed, how many commands each has seen and struck.",
    handle: (_request, { faults }) => json(shown(faults)),
  },
  "POST /faults": {
    what: "Arms a fault: `action`, and as wanted `match`, `nth`, `times` (a number, or `always`), `value`.",
    handle: postFault,
  },
  "DELETE /faults": {
    what: "Disarms all faults.",
    handle: (_request, { faults }) => {
      faults.clear();
      return json([]);
    },
  },
};

async function postFault(request: Request, { faults }: Simulation): Promise<Response> {
  faults.arm(readFault(await readObject(request)));
  return json(shown(faults), 201);
}

/** JSON has no infinity. */
function shown(faults: Faults): readonly unknown[] {
  return faults.list().map((fault) => fault.times === Infinity ? { ...fault, times: "always" } : fault);
}

/** @throws {BadRequest} when a part of it is invalid. */
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
  const problem = value === undefined ? undefined : valueProblem(faultKinds[action].value, value);
  if (problem !== undefined) throw new BadRequest(`The value of ${action} must be ${problem}.`);
  return {
    match: readPattern(body),
    nth: readCount(body, "nth", 1, 1),
    times: body["times"] === "always" ? Infinity : readCount(body, "times", 1, 1),
    action,
    value,
  };
}

/** The expected form of a value; undefined when it has that form. */
function valueProblem(kind: FaultValue, value: string | number): string | undefined {
  const isCount = value !== "" && Number.isSafeInteger(Number(value)) && Number(value) >= 0;
  switch (kind) {
    case "none":
      return "left out";
    case "text":
      return undefined;
    case "count":
      return isCount ? undefined : "a whole number, not negative";
    case "cut":
      return isCount || value === "sentinel" ? undefined : "a whole number, not negative, or sentinel";
    case "moment":
      return value === "before" || value === "after" ? undefined : "before or after";
  }
}
