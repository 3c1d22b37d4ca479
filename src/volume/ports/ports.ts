/**
 * What the rules and services need from the world, as interfaces: the router, the node's devices and file systems,
 * time and chance. Adapters implement them; tests and the deterministic simulation hand in others.
 *
 * Nothing in here does anything.
 *
 * @module
 */

export type { FilesystemType } from "../model/capabilities.ts";
export type * from "../model/inventory.ts";
export type { NodeDirectory } from "./cluster_ports.ts";
export type * from "./node_events.ts";
export type * from "./node_ports.ts";
export type * from "./store.ts";
export type * from "./system.ts";
