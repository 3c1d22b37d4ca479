import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";
import { identifierOf, identifierPath, kernelIdentifier } from "./client_identifier.ts";

const titles = "NV SERVER   PORT USE HOSTNAME\n";

function scene(found: string | undefined, servers = titles) {
  const files = new FakeKernelFiles();
  if (found !== undefined) files.texts.set(identifierPath, found);
  files.texts.set("/proc/fs/nfsfs/servers", servers);
  files.texts.set("/proc/1/root/etc/machine-id", "0a0b0c0d\n");
  const written: unknown[] = [];
  const notes: string[] = [];
  const attributes = { write: (path: string, value: number | string) => void written.push(path, value) };
  const note = (message: string) => void notes.push(message);
  const identifier = kernelIdentifier({
    files,
    attributes,
    nodeId: "node-1",
    notes: { info: note, warn: note },
  });
  return { files, written, notes, identifier, attributes };
}

Deno.test("kernelIdentifier() sets an empty identifier from machine and node", () => {
  for (const found of ["", "(null)"]) {
    const { identifier, written } = scene(found);
    identifier.ensure([]);
    assert.deepEqual(written, [identifierPath, identifierOf("0a0b0c0d", "node-1")]);
  }
});

Deno.test("kernelIdentifier() leaves one that is set, and a kernel that has none", () => {
  for (const found of ["somebody's", undefined]) {
    const { identifier, written } = scene(found);
    identifier.ensure([]);
    assert.deepEqual(written, []);
  }
});

Deno.test("kernelIdentifier() leaves a name that is given on the kernel's command line", () => {
  const { identifier, written, files } = scene("(null)");
  files.texts.set("/sys/module/nfs/parameters/nfs4_unique_id", "mine");
  identifier.ensure([]);
  assert.deepEqual(written, []);
});

Deno.test("kernelIdentifier() changes nothing while anything is mounted over NFS, also elsewhere", () => {
  const mounted = scene("");
  mounted.identifier.ensure([{ filesystem: "nfs4" } as MountEntry]);
  assert.deepEqual(mounted.written, []);
  const elsewhere = scene("", `${titles}v4 7f000001  801   3 127.0.0.1\n`);
  elsewhere.identifier.ensure([]);
  assert.deepEqual(elsewhere.written, []);
});

Deno.test("kernelIdentifier() says that the kernel refuses, and lets the mount go on", () => {
  const { identifier, attributes, notes } = scene("");
  attributes.write = () => {
    throw new VolumeError("unavailable", "Cannot write");
  };
  identifier.ensure([]);
  assert.match(notes.join(), /cannot name/);
});

Deno.test("identifierOf() differs by machine and by node, and has one word that fits into the kernel's 64 bytes", () => {
  const all = [identifierOf("m1", "n1"), identifierOf("m2", "n1"), identifierOf("m1", "n2")];
  assert.equal(new Set(all).size, 3);
  for (const one of all) assert.match(one, /^rds-csi-[0-9a-f]{32}$/);
});
