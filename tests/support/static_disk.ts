// A foreign disk with data in it, on a simulated router, and operations on it.
import assert from "node:assert/strict";
import { control } from "./control_port.ts";
import { importCommand } from "../../src/cli/import.ts";
import { releaseCommand } from "../../src/cli/release.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { runCommand } from "./command_run.ts";
import { gibibyte, publishRequest, state } from "./controller_calls.ts";
import { type Stack, type StackOptions, startStack } from "./stack.ts";

/** The foreign disk's file. */
export const path = "/storage-pool/images/data.img";
const marker = "what somebody wrote";

/** A router of that kind with a file of 1 GiB whose content must not be lost. */
export async function startWithFile(options: StackOptions = {}) {
  const backing = await Deno.makeTempDir({ prefix: "rds-csi-static-" });
  const stack = await startStack({
    ...options,
    simulator: { backingDirectory: backing, ...options.simulator },
  });
  await control(stack.simulator, "POST /files", { name: path, type: "file", size: Number(gibibyte) });
  const file = await findFile(backing, "data.img");
  using written = await Deno.open(file, { write: true });
  await written.write(new TextEncoder().encode(marker));
  return {
    stack,
    /** Checks the file's content and size. */
    async assertIntact(sizeBytes = gibibyte): Promise<void> {
      using opened = await Deno.open(file);
      const bytes = new Uint8Array(marker.length);
      await opened.read(bytes);
      assert.equal(new TextDecoder().decode(bytes), marker);
      assert.equal(BigInt((await opened.stat()).size), sizeBytes);
    },
    async [Symbol.asyncDispose]() {
      await stack[Symbol.asyncDispose]();
      await Deno.remove(backing, { recursive: true });
    },
  };
}

async function findFile(folder: string, name: string): Promise<string> {
  for await (const entry of Deno.readDir(folder)) {
    const at = `${folder}/${entry.name}`;
    if (entry.isDirectory) {
      const found = await findFile(at, name);
      if (found !== "") return found;
    } else if (entry.name === name) return at;
  }
  return "";
}

/** A disk as a person makes it. */
export async function addDisk(stack: Stack, over: Record<string, unknown> = {}): Promise<void> {
  const disk = { slot: "data", "file-path": path, size: String(gibibyte), comment: "films" };
  await control(stack.simulator, "POST /disks", { ...disk, ...over });
}

/** A disk as the router shows it. */
export async function disk(stack: Stack, slot = "data") {
  return (await state(stack)).disks.find((one) => one.slot === slot);
}

/** The record in a disk's comment. */
export async function recordOf(stack: Stack, slot = "data") {
  const parsed = parseComment(String((await disk(stack, slot))?.["comment"]));
  return parsed.state === "record" ? parsed.comment : assert.fail(parsed.state);
}

/** Volume contexts of PersistentVolumes written by hand. */
export const contexts: readonly Record<string, string>[] = [{}, { static: "true" }];
/** The volume context of a PersistentVolume that requests an import. */
export const isStatic = { volumeContext: { static: "true" } };
/** `rds-csi import`. */
export const doImport = (stack: Stack, ...args: string[]) => runCommand(stack, importCommand, args);
/** `rds-csi release` of the disk. */
export const release = (stack: Stack) => runCommand(stack, releaseCommand, ["data"]);

/** Calls of an orchestrator for the disk. */
export function calls(stack: Stack) {
  const { controller } = stack.clients;
  return {
    publish: async (node = "node-1", more: Record<string, unknown> = isStatic) =>
      (await controller.call("ControllerPublishVolume", { ...publishRequest("data", node), ...more }))
        .publishContext,
    unpublish: (node = "node-1") =>
      controller.call("ControllerUnpublishVolume", { volumeId: "data", nodeId: node }),
    delete: () => controller.call("DeleteVolume", { volumeId: "data" }),
  };
}
