import assert from "node:assert/strict";
import { testBase, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import {
  assertBasePath,
  fromLegacyContext,
  type ParameterDefaults,
  parameterHelp,
  parameterNames,
  parametersDigest,
  parseParameters,
  parseVolumeContext,
  volumeContext,
} from "./parameters.ts";

const defaults: ParameterDefaults = {
  backend: "default",
  basePaths: [testBase, "/fast/csi"],
  nvmeAddress: "10.0.0.1",
  nvmePort: 4420,
  nqnPrefix: testPrefix,
  routerAddress: "10.0.0.2",
  routerPort: 2222,
};

const everything = {
  backend: "default",
  volumePath: "/fast/csi",
  nvmePort: "65535",
  nvmeAddress: "storage.example.com",
  migrationTimeoutSeconds: "30",
  fsLabel: "data_1.x-y",
  ctrlLossTmo: "-1",
  reconnectDelay: "1",
  keepAliveTmo: "3600",
  nrIoQueues: "256",
  fastIoFailTmo: "86400",
  hdrDigest: "true",
  dataDigest: "false",
  deviceLayer: "auto",
  encrypted: "true",
  allowDiscards: "false",
  pbkdfMemory: "64",
  pbkdfTime: "500",
  fsckMode: "off",
  mkfsOptions: "-m 1 -O ^has_journal -E lazy_itable_init=1",
  rdsAddress: "10.0.0.2",
  sshPort: "2222",
  nqnPrefix: testPrefix,
  fsType: "xfs",
};

Deno.test("parseParameters() fills an empty StorageClass from the settings", () => {
  assert.deepEqual(parseParameters({}, defaults), {
    backend: "default",
    basePath: testBase,
    nvmeAddress: "10.0.0.1",
    nvmePort: 4420,
    migrationTimeoutSeconds: 300,
    fsType: "",
    encrypted: false,
    node: {},
  });
});

Deno.test("parseParameters() reads every known key", () => {
  assert.deepEqual(new Set(Object.keys(everything)), new Set(parameterNames));
  const { fsType, fsLabel, ctrlLossTmo, reconnectDelay, keepAliveTmo, nrIoQueues } = everything;
  const { fastIoFailTmo, hdrDigest, dataDigest, deviceLayer, fsckMode, mkfsOptions } = everything;
  const { encrypted, allowDiscards, pbkdfMemory, pbkdfTime } = everything;
  const encryption = { encrypted, allowDiscards, pbkdfMemory, pbkdfTime };
  const digests = { hdrDigest, dataDigest };
  const connection = { ctrlLossTmo, reconnectDelay, keepAliveTmo, nrIoQueues, fastIoFailTmo, ...digests };
  assert.deepEqual(parseParameters(everything, defaults), {
    backend: "default",
    basePath: "/fast/csi",
    nvmeAddress: "storage.example.com",
    nvmePort: 65_535,
    migrationTimeoutSeconds: 30,
    fsType: "xfs",
    encrypted: true,
    node: { fsType, fsLabel, ...connection, deviceLayer, ...encryption, fsckMode, mkfsOptions },
  });
});

Deno.test("parseParameters() refuses encryption with a device layer, and its parameters without encryption", () => {
  const refused = (parameters: Record<string, string>, message: RegExp) =>
    assert.throws(() => parseParameters(parameters, defaults), refusal("invalid", message));
  refused(
    { encrypted: "true", deviceLayer: "multipath" },
    /deviceLayer="multipath"; use auto or none with encrypted/,
  );
  refused({ allowDiscards: "true" }, /allowDiscards/);
  refused({ encrypted: "false", pbkdfMemory: "64" }, /pbkdfMemory/);
  refused({ pbkdfTime: "500" }, /pbkdfTime/);
  for (const deviceLayer of ["auto", "none"]) {
    assert.equal(parseParameters({ encrypted: "true", deviceLayer }, defaults).encrypted, true);
  }
});

Deno.test("parameterHelp explains exactly the known keys", () => {
  assert.deepEqual(Object.keys(parameterHelp).toSorted(), parameterNames.toSorted());
});

Deno.test("parseParameters() refuses unknown keys, also those that every object has", () => {
  const objects: Record<string, string>[] = [
    { volumepath: testBase },
    { Backend: "default" },
    { "": "x" },
    { "csi.storage.k8s.io": "x" },
    JSON.parse('{"__proto__": "x"}'),
    Object.fromEntries([["__proto__", "x"]]),
    { constructor: "x" } as unknown as Record<string, string>,
    { toString: "x" } as unknown as Record<string, string>,
    { ["k".repeat(500)]: "x" },
  ];
  for (const parameters of objects) {
    assert.throws(
      () => parseParameters(parameters, defaults),
      refusal("invalid", /unknown: key=.{0,80}; known are/),
    );
  }
});

Deno.test("parseParameters() ignores the sidecars' keys", () => {
  const sidecars = { "csi.storage.k8s.io/pvc/name": "x", "csi.storage.k8s.io/fstype": "zfs" };
  assert.deepEqual(parseParameters(sidecars, defaults), parseParameters({}, defaults));
});

const wrongValues: Record<string, readonly string[]> = {
  encrypted: ["yes", "True", ""],
  allowDiscards: ["1", ""],
  pbkdfMemory: ["31", "1025", "64MiB", ""],
  pbkdfTime: ["99", "10001", ""],
  backend: ["", "other"],
  nvmePort: ["abc", "0", "99999", "65536", "1.5", "-1", "", " 4420", "04420", "4420;", "0x10", "1e3"],
  nvmeAddress: ["", "a b"],
  migrationTimeoutSeconds: ["29", "3601", "soon"],
  fsLabel: ["", "thirteen-long", "a b", "a/b", "-L"],
  ctrlLossTmo: ["-2", "86401", "1.5"],
  reconnectDelay: ["0", "3601"],
  keepAliveTmo: ["-1", "3601"],
  nrIoQueues: ["0", "257"],
  fastIoFailTmo: ["0", "-1", "86401"],
  hdrDigest: ["", "yes", "True"],
  dataDigest: ["", "1", "off"],
  deviceLayer: ["", "Auto", "dm"],
  fsckMode: ["", "Preen", "yes"],
  mkfsOptions: ["", " -m 1", "-m  1", "-m\t1", "-O " + "x".repeat(510)],
  rdsAddress: ["10.0.0.3", ""],
  sshPort: ["22", "02222"],
  nqnPrefix: ["nqn.2024-01.com.example", `${testPrefix}:`],
  fsType: ["", "ext3", "btrfs"],
};

Deno.test("parseParameters() refuses values that are not allowed, naming key and value", () => {
  for (const [key, values] of Object.entries(wrongValues)) {
    for (const value of values) {
      const named = refusal("invalid", new RegExp(`^Cannot use the parameter: ${key}=".*; use `));
      assert.throws(
        () => parseParameters({ [key]: value }, defaults),
        named,
        `${key}=${JSON.stringify(value)}`,
      );
    }
  }
});

const wrongFolders = [
  "",
  "/",
  "pool/csi",
  "/pool/csi/",
  "//pool/csi",
  "/pool//csi",
  "/pool/csi/..",
  "/pool/csi/../etc",
  "/pool/./csi",
  "/pool/.hidden",
  "/pool/c si",
  "/pool/csi;x",
  "/pool/csi$x",
  '/pool/"csi"',
  "/pool/csi\n",
  "/pool/[csi]",
  "/pool/cs\u00ef",
  "/" + "x".repeat(64),
];

Deno.test("assertBasePath() accepts plain absolute folders and refuses everything else", () => {
  for (const path of ["/pool", "/pool/csi", "/storage-pool/metal-csi", "/a/b_c/d.e", "/" + "x".repeat(63)]) {
    assertBasePath("--base-path", path);
  }
  for (const path of wrongFolders) {
    assert.throws(() => assertBasePath("--base-path", path), refusal("invalid"), JSON.stringify(path));
  }
});

Deno.test("parseParameters() accepts as volumePath only the allowed folders, where a delete searches for images", () => {
  const outside = [
    "/pool",
    "/pool/csi-evil",
    "/pool/cs",
    "/pool/csi/deeper",
    "/fast",
    "/other/csi",
    "/Pool/csi",
  ];
  for (const volumePath of [...wrongFolders, ...outside]) {
    assert.throws(
      () => parseParameters({ volumePath }, defaults),
      refusal("invalid"),
      JSON.stringify(volumePath),
    );
  }
});

Deno.test("parametersDigest() distinguishes different parameters, whatever their order and whatever sidecars add", () => {
  const one = parametersDigest({ fsckMode: "off", nvmePort: "4420" });
  assert.match(one, /^[0-9a-f]{8}$/);
  assert.equal(
    parametersDigest({ nvmePort: "4420", fsckMode: "off", "csi.storage.k8s.io/pv/name": "x" }),
    one,
  );
  const others = [{}, { fsckMode: "off" }, { fsckMode: "off", nvmePort: "442" }, {
    fsckModeoff: "",
    nvmePort: "4420",
  }];
  for (const other of others) assert.notEqual(parametersDigest(other as Record<string, string>), one);
});

Deno.test("parseVolumeContext() reads back what volumeContext() wrote, except where new volumes go", () => {
  const parameters = parseParameters(everything, defaults);
  const read = parseVolumeContext(volumeContext(parameters), defaults);
  assert.deepEqual(read, { ...parameters, basePath: defaults.basePaths[0] });
});

Deno.test("parseVolumeContext() accepts a volume whose base path is no longer one of the settings", () => {
  const context = volumeContext(parseParameters(everything, defaults));
  assert.equal(parseVolumeContext(context, { ...defaults, basePaths: ["/other/csi"] }).backend, "default");
});

Deno.test("parseVolumeContext() notes that a PersistentVolume names no port", () => {
  const { nvmePort } = defaults;
  const named = parseVolumeContext({ nvmePort: String(nvmePort) }, defaults);
  assert.deepEqual(parseVolumeContext({}, defaults), { ...named, namesNoPort: true });
});

Deno.test("parseVolumeContext() ignores foreign and legacy keys but checks its own", () => {
  const context = {
    ...volumeContext(parseParameters({}, defaults)),
    "storage.kubernetes.io/csiProvisionerIdentity": "x",
    rdsAddress: "10.9.9.9",
    nqn: "nqn.x",
    constructor: "x",
  } as unknown as Record<string, string>;
  assert.deepEqual(parseVolumeContext(context, defaults), parseParameters({}, defaults));
  assert.throws(() => parseVolumeContext({ ...context, nvmePort: "0" }, defaults), refusal("invalid"));
});

const earlier = {
  nqn: "nqn.2000-02.com.mikrotik:pvc-1",
  nvmePort: "4420",
  volumePath: "/pool/csi/pvc-1.img",
};

Deno.test("fromLegacyContext() leaves out what was left to the kernel, and limits values that are too large", () => {
  const cases: readonly (readonly [given: Record<string, string>, read: Record<string, string>])[] = [
    [{}, {}],
    [{ ctrlLossTmo: "-1", reconnectDelay: "5", keepAliveTmo: "0" }, {
      ctrlLossTmo: "-1",
      reconnectDelay: "5",
    }],
    [{ ctrlLossTmo: "0", keepAliveTmo: "10" }, { keepAliveTmo: "10" }],
    [
      { ctrlLossTmo: "604800", reconnectDelay: "9999999999", keepAliveTmo: "3601" },
      { ctrlLossTmo: "86400", reconnectDelay: "3600", keepAliveTmo: "3600" },
    ],
    // Values that the legacy driver never wrote stay as they are.
    [{ ctrlLossTmo: "soon", fsckMode: "0" }, { ctrlLossTmo: "soon", fsckMode: "0" }],
  ];
  for (const [given, read] of cases) {
    assert.deepEqual(fromLegacyContext({ ...earlier, ...given }), { ...earlier, ...read });
  }
});

Deno.test("fromLegacyContext() returns a context of this driver unchanged", () => {
  const contexts: readonly Readonly<Record<string, string>>[] = [
    {},
    { backend: "default", ctrlLossTmo: "0" },
    { ...earlier, backend: "default", ctrlLossTmo: "0" },
  ];
  for (const own of contexts) {
    assert.equal(fromLegacyContext(own), own);
  }
});
