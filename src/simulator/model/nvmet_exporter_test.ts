import assert from "node:assert/strict";
import { identityFor } from "./exports.ts";
import { NvmetExporter } from "./nvmet_exporter.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

const nqn = "nqn.2000-02.com.mikrotik:a:1-ab12cd34";
const access = { sizeBytes: 4096n, port: 4420, hosts: undefined, identity: identityFor(nqn) };

/** The kernel's folder contains its own files; in a plain folder they prevent its removal. */
async function withExporter(test: (exporter: NvmetExporter, folder: string) => void): Promise<void> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const removeFolder = (path: string) => Deno.removeSync(path, { recursive: true });
  for (const name of ["subsystems", "ports", "hosts"]) await Deno.mkdir(`${folder}/${name}`);
  test(new NvmetExporter({ folder, address: "127.0.0.1", removeFolder }), folder);
}

function names(path: string): string[] {
  return Array.from(Deno.readDirSync(path), ({ name }) => name).toSorted();
}

Deno.test("NvmetExporter makes a subsystem with one namespace, open to all hosts, on the disk's port", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, "/back/a.img", access);
    const text = (path: string) => Deno.readTextFileSync(`${folder}/${path}`);
    const namespace = `subsystems/${nqn}/namespaces/1`;
    assert.deepEqual(
      ["device_path", "buffered_io", "enable"].map((name) => text(`${namespace}/${name}`)),
      ["/back/a.img", "0", "1"],
    );
    assert.equal(text(`subsystems/${nqn}/attr_allow_any_host`), "1");
    assert.deepEqual(
      ["adrfam", "trtype", "traddr", "trsvcid"].map((name) => text(`ports/4420/addr_${name}`)),
      ["ipv4", "tcp", "127.0.0.1", "4420"],
    );
    assert.equal(Deno.readLinkSync(`${folder}/ports/4420/subsystems/${nqn}`), `${folder}/subsystems/${nqn}`);
  });
});

Deno.test("NvmetExporter passes the kernel the identity that the router shows", async () => {
  await withExporter((exporter, folder) => {
    const subsystem = `${folder}/subsystems/${nqn}`;
    const read = (name: string) => Deno.readTextFileSync(`${subsystem}/${name}`);
    exporter.serve(nqn, "/back/a.img", access);
    assert.match(access.identity.serial, /^[0-9a-f]{16}$/);
    assert.match(access.identity.uuid, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.deepEqual(["attr_serial", "attr_model", "namespaces/1/device_uuid"].map(read), [
      access.identity.serial,
      "Linux",
      access.identity.uuid,
    ]);
    // Only newer kernels allow setting it.
    assert.throws(() => read("attr_firmware"), Deno.errors.NotFound);
  });
});

Deno.test("NvmetExporter leaves nothing behind when everything is withdrawn", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, "/back/a.img", access);
    exporter.serve("nqn.b", "/back/b.img", access);
    exporter.withdraw(nqn);
    assert.deepEqual(names(`${folder}/ports/4420/subsystems`), ["nqn.b"]);
    exporter.withdraw("nqn.b");
    exporter.withdraw("nqn.b");
    assert.deepEqual([names(`${folder}/ports`), names(`${folder}/subsystems`)], [[], []]);
  });
});

Deno.test("NvmetExporter leaves an existing port alone", async () => {
  await withExporter((exporter, folder) => {
    Deno.mkdirSync(`${folder}/ports/4420/subsystems`, { recursive: true });
    exporter.serve(nqn, "/back/a.img", access);
    exporter.withdraw(nqn);
    assert.deepEqual(names(`${folder}/ports`), ["4420"]);
  });
});

Deno.test("NvmetExporter admits exactly the hosts of the list, and no new host while it lingers", async () => {
  await withExporter((exporter, folder) => {
    const list = `${folder}/subsystems/${nqn}/allowed_hosts`;
    const open = () => Deno.readTextFileSync(`${folder}/subsystems/${nqn}/attr_allow_any_host`);
    exporter.serve(nqn, "/back/a.img", { ...access, hosts: ["nqn.one", "nqn.two"] });
    assert.deepEqual([names(list), open()], [["nqn.one", "nqn.two"], "0"]);
    assert.equal(Deno.readLinkSync(`${list}/nqn.one`), `${folder}/hosts/nqn.one`);
    exporter.change(nqn, { ...access, hosts: ["nqn.two"] });
    assert.deepEqual([names(list), open()], [["nqn.two"], "0"]);
    exporter.change(nqn, access);
    assert.deepEqual([names(list), open()], [[], "1"]);
    exporter.linger(nqn);
    assert.deepEqual([names(list), open()], [[], "0"]);
  });
});

Deno.test("NvmetExporter follows a new size and a new port", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, "/back/a.img", access);
    const revalidate = `${folder}/subsystems/${nqn}/namespaces/1/revalidate_size`;
    exporter.change(nqn, access);
    assert.throws(() => Deno.statSync(revalidate), Deno.errors.NotFound);
    exporter.change(nqn, { ...access, sizeBytes: 8192n });
    assert.equal(Deno.readTextFileSync(revalidate), "1");
    exporter.change(nqn, { ...access, sizeBytes: 8192n, port: 4421 });
    assert.deepEqual(names(`${folder}/ports`), ["4421"]);
  });
});

Deno.test("NvmetExporter replaces what an earlier run left behind", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, "/back/old.img", { ...access, port: 4421, hosts: ["nqn.one"] });
    const removeFolder = (path: string) => Deno.removeSync(path, { recursive: true });
    new NvmetExporter({ folder, address: "127.0.0.1", removeFolder }).serve(nqn, "/back/a.img", access);
    const path = Deno.readTextFileSync(`${folder}/subsystems/${nqn}/namespaces/1/device_path`);
    assert.deepEqual([path, names(`${folder}/ports/4421/subsystems`)], ["/back/a.img", []]);
  });
});

Deno.test("NvmetExporter serves nothing that is only in memory, and makes nothing outside its folder", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, undefined, access);
    for (const name of ["../escape", "..", ".", "a/b", ""]) {
      exporter.serve(name, "/back/a.img", access);
      exporter.withdraw(name);
    }
    assert.deepEqual([names(folder), names(`${folder}/subsystems`)], [["hosts", "ports", "subsystems"], []]);
  });
});

Deno.test("NvmetExporter ends everything when it is closed", async () => {
  await withExporter((exporter, folder) => {
    exporter.serve(nqn, "/back/a.img", access);
    exporter.serve("nqn.b", "/back/b.img", access);
    void exporter.close();
    assert.deepEqual([names(`${folder}/ports`), names(`${folder}/subsystems`)], [[], []]);
  });
});
