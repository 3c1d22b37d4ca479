import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { VolumeError } from "../../volume/errors.ts";
import { defaultProtoPath, loadCsi, LOADER_OPTIONS } from "./proto.ts";

Deno.test("loadCsi() returns every service of the specification", () => {
  const csi = loadCsi();
  for (const service of ["Identity", "Controller", "Node"] as const) {
    assert.ok(Object.keys(csi[service]).length > 0, service);
  }
  assert.equal(csi.Identity.Probe.path, "/csi.v1.Identity/Probe");
});

Deno.test("loadCsi() defines every method as the package's public loader does, without what only reflection needs", () => {
  const reference = loadSync(defaultProtoPath(), LOADER_OPTIONS);
  for (const [name, service] of Object.entries(loadCsi())) {
    const expected = reference[`csi.v1.${name}`] as unknown as Record<string, PublicMethod>;
    assert.deepEqual(Object.keys(service).sort(), Object.keys(expected).sort());
    for (const [method, definition] of Object.entries<PublicMethod>(service)) {
      const { requestType: _, responseType: __, options: ___, originalName: ____, ...used } =
        expected[method]!;
      assert.deepEqual(Object.keys(definition).sort(), Object.keys(used).sort(), method);
      for (const key of ["path", "requestStream", "responseStream"] as const) {
        assert.equal(definition[key], used[key], method);
      }
      for (
        const [encode, decode] of [["requestSerialize", "requestDeserialize"], [
          "responseSerialize",
          "responseDeserialize",
        ]] as const
      ) {
        const bytes = definition[encode](filled);
        assert.deepEqual(bytes, used[encode](filled), method);
        assert.deepEqual(definition[decode](bytes), used[decode](bytes), method);
      }
    }
  }
});

type PublicMethod = MethodDefinition<object, object>;

/** Fields of several messages, of every kind; each message uses those that it has. */
const filled = {
  name: "pvc-1",
  volumeId: "pvc-1",
  availableCapacity: "9007199254740993",
  capacityRange: { requiredBytes: "9007199254740993" },
  capacityBytes: 5,
  parameters: { pool: "fast" },
  ready: { value: true },
  volume: { volumeId: "pvc-1", capacityBytes: "1", contentSource: { volume: { volumeId: "pvc-2" } } },
  volumeCapabilities: [{ block: {}, accessMode: { mode: "SINGLE_NODE_WRITER" } }],
};

Deno.test("defaultProtoPath() finds the file from the sources, from a bundle and beside it", async () => {
  const scratch = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  // Deep enough that all searched folders are inside.
  const folder = `${scratch}/some/where/deep`;
  try {
    await Deno.mkdir(`${folder}/proto`, { recursive: true });
    await Deno.writeTextFile(`${folder}/proto/csi.proto`, "");
    for (const module of ["src/csi/server/proto.ts", "dist/bundle/main.js", "main.js"]) {
      assert.equal(
        defaultProtoPath(pathToFileURL(`${folder}/${module}`).href),
        `${folder}/proto/csi.proto`,
        module,
      );
    }
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
});

Deno.test("defaultProtoPath() throws internal naming where it searched", () => {
  assert.throws(() => defaultProtoPath("file:///nowhere/src/csi/server/proto.ts"), (error) => {
    assert.ok(VolumeError.is(error, "internal"));
    assert.match(error.message, /\/nowhere\/proto\/csi\.proto/);
    return true;
  });
});
