import type { CallContext } from "../../volume/ports/ports.ts";
import type { NodeParameters, PublishContext } from "./contexts.ts";
import type { Stashes } from "./staging_store.ts";
import type { Undo } from "./undo.ts";
import type { NodeWorld } from "../deps.ts";

/** A stage under way: what each of its steps works with. */
export interface Staging {
  readonly world: NodeWorld;
  readonly stashes: Stashes;
  readonly publish: PublishContext;
  readonly parameters: NodeParameters;
  readonly undo: Undo;
  readonly context: CallContext;
}
