import type { Menus } from "../menu/menu.ts";
import type { ConnectionService } from "../ssh/connection.ts";
import type { SshService } from "../ssh/server.ts";
import { normalisePath } from "../model/paths.ts";
import { Refusal } from "../refusal.ts";

/** Everything that makes up one running simulator. */
export interface Simulation extends ConnectionService {
  readonly menus: Menus;
  readonly ssh: SshService;
}

/** Answers one kind of request. `name` is what follows the route's path, decoded; "" when nothing does. */
type Handler = (
  request: Request,
  simulation: Simulation,
  name: string,
) => Response | Promise<Response>;

/** What the control port does with one kind of request. */
interface Route {
  /** What it does, as a sentence for people. */
  readonly what: string;
  readonly handle: Handler;
}

/** Routes by method and path, such as `GET /disks`, or `PATCH /disks/…` where a name follows. */
export type Routes = Readonly<Record<string, Route>>;

/** A request that the control port cannot make sense of. */
export class BadRequest extends Error {
  override readonly name = "BadRequest";
}

/** A request for something that is not there. */
export class NotFound extends Error {
  override readonly name = "NotFound";
}

/** A JSON object, before anything is known about it. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads a JSON object from a request; an empty body is an empty object.
 *
 * @throws {BadRequest} when it is none.
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

/** Reads a text. @throws {BadRequest} when it is none, or is missing without a default. */
export function readText(body: JsonObject, name: string, otherwise?: string): string {
  const value = body[name] ?? otherwise;
  if (typeof value !== "string") throw new BadRequest(`${name} must be a text.`);
  return value;
}

/** Reads a whole number, at least `least`. @throws {BadRequest} when it is none. */
export function readCount(body: JsonObject, name: string, least: number, otherwise: number): number {
  const value = body[name] ?? otherwise;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least) {
    throw new BadRequest(`${name} must be a whole number of at least ${least}.`);
  }
  return value;
}

/** Reads a truth value. @throws {BadRequest} when it is none. */
export function readTruth(body: JsonObject, name: string, otherwise: boolean): boolean {
  const value = body[name] ?? otherwise;
  if (typeof value !== "boolean") throw new BadRequest(`${name} must be true or false.`);
  return value;
}

/** Reads a regular expression in `match`; without one it fits everything. @throws {BadRequest} when it is none. */
export function readPattern(body: JsonObject): string {
  const match = readText(body, "match", "");
  try {
    new RegExp(match);
  } catch (error) {
    throw new BadRequest(`match is no regular expression: ${error instanceof Error ? error.message : error}`);
  }
  return match;
}

/** Brings a file's name into the form that the router uses. @throws {BadRequest} when it is none. */
export function readPath(name: string): string {
  try {
    return normalisePath(name);
  } catch (error) {
    if (error instanceof Refusal) throw new BadRequest(`${JSON.stringify(name)} is no file name.`);
    throw error;
  }
}

/** A response with a value as JSON; big numbers become plain ones. */
export function json(value: unknown, status = 200): Response {
  const text = JSON.stringify(value, (_name, inner) => typeof inner === "bigint" ? Number(inner) : inner);
  return new Response(`${text}\n`, { status, headers: { "content-type": "application/json" } });
}
