import type { Menus } from "../menu/menu.ts";
import type { ConnectionService } from "../ssh/connection.ts";
import type { SshService } from "../ssh/server.ts";
import { normalisePath } from "../model/paths.ts";
import { Refusal } from "../refusal.ts";

/** All parts of a running simulator. */
export interface Simulation extends ConnectionService {
  readonly menus: Menus;
  readonly ssh: SshService;
}

/** Answers one kind of request. `name` is the decoded rest of the path after the route; "" if there is none. */
type Handler = (
  request: Request,
  simulation: Simulation,
  name: string,
) => Response | Promise<Response>;

/** One kind of request of the control port. */
interface Route {
  /** Its purpose, as a sentence for people. */
  readonly what: string;
  readonly handle: Handler;
}

/** Routes by method and path, such as `GET /disks`, or `PATCH /disks/…` where a name follows. */
export type Routes = Readonly<Record<string, Route>>;

/** An invalid request to the control port. */
export class BadRequest extends Error {
  override readonly name = "BadRequest";
}

/** A request for something that does not exist. */
export class NotFound extends Error {
  override readonly name = "NotFound";
}

/** A JSON object whose content was not checked yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a JSON object from a request; an empty body is an empty object.
 *
 * @throws {BadRequest} when it is invalid.
 */
export async function readObject(request: Request): Promise<JsonObject> {
  const body = parseJson(await request.text());
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new BadRequest("The body must be a JSON object.");
  }
  return body as JsonObject;
}

function parseJson(text: string): unknown {
  try {
    return text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new BadRequest(`The body is no JSON: ${error instanceof Error ? error.message : error}.`);
  }
}

/** @throws {BadRequest} when the body has a key that is not among `names`. */
export function assertOnly(body: JsonObject, names: readonly string[]): void {
  const other = Object.keys(body).find((name) => !names.includes(name));
  if (other !== undefined) {
    throw new BadRequest(`There is no ${JSON.stringify(other)} here; there are ${names.join(", ")}.`);
  }
}

/** Reads a text. @throws {BadRequest} when it has another type, or is missing without a default. */
export function readText(body: JsonObject, name: string, otherwise?: string): string {
  const value = body[name] ?? otherwise;
  if (typeof value !== "string") throw new BadRequest(`${name} must be a text.`);
  return value;
}

/** Reads a whole number, at least `least`. @throws {BadRequest} when it is invalid. */
export function readCount(body: JsonObject, name: string, least: number, otherwise: number): number {
  const value = body[name] ?? otherwise;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least) {
    throw new BadRequest(`${name} must be a whole number of at least ${least}.`);
  }
  return value;
}

/** Reads a boolean. @throws {BadRequest} when it has another type. */
export function readTruth(body: JsonObject, name: string, otherwise: boolean): boolean {
  const value = body[name] ?? otherwise;
  if (typeof value !== "boolean") throw new BadRequest(`${name} must be true or false.`);
  return value;
}

/** Reads a regular expression from `match`; the default matches everything. @throws {BadRequest} when it is invalid. */
export function readPattern(body: JsonObject): string {
  const match = readText(body, "match", "");
  try {
    new RegExp(match);
  } catch (error) {
    throw new BadRequest(`match is no regular expression: ${error instanceof Error ? error.message : error}`);
  }
  return match;
}

/** Converts a file's name to the router's form. @throws {BadRequest} when it is invalid. */
export function readPath(name: string): string {
  try {
    return normalisePath(name);
  } catch (error) {
    if (error instanceof Refusal) throw new BadRequest(`${JSON.stringify(name)} is no file name.`);
    throw error;
  }
}

/** A response with a value as JSON; bigints become plain numbers. */
export function json(value: unknown, status = 200): Response {
  const text = JSON.stringify(value, (_name, inner) => typeof inner === "bigint" ? Number(inner) : inner);
  return new Response(`${text}\n`, { status, headers: { "content-type": "application/json" } });
}
