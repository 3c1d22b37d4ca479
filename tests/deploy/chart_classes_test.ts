// What the chart refuses and takes of classes, and that it knows the names which the driver knows.
import assert from "node:assert/strict";
import { directoryParameterHelp } from "../../src/volume/model/directory/parameters.ts";
import { parameterNames, parseParameters } from "../../src/volume/model/parameters.ts";
import type { FlagTable } from "../../src/cli/flags.ts";
import { routerFlags, serveFlags } from "../../src/cli/config/flag_tables.ts";
import { simulatorFlags } from "../../src/cli/simulator.ts";
import { kubeletFolders } from "../../src/cli/serve/privileges.ts";
import { chartTest, type Refusal, render, valuesTests, withAddress } from "./chart.ts";
import { readDeployFile } from "./objects.ts";

const classes = (...all: readonly object[]) => ({ storageClasses: all });
const routers = (own: object) => ({
  config: { routers: [{ name: "a", default: true, address: "10.0.0.1", existingSecret: "s", ...own }] },
});
const directory = (own: object) => ({ directory: { enabled: true, basePaths: ["/share/k8s"], ...own } });

const encrypted = (own: object) => classes({ name: "a", parameters: { encrypted: "true", ...own } });
const secretKey = "csi.storage.k8s.io/node-stage-secret-";
/** As a class without encryptionSecret names it. */
const secret = Object.fromEntries(
  ["stage", "publish"].flatMap((call) => [
    [`csi.storage.k8s.io/node-${call}-secret-name`, "s"],
    [`csi.storage.k8s.io/node-${call}-secret-namespace`, "n"],
  ]),
);

/** Values beside `router.address`, and what is said of them. */
const refused: readonly Refusal[] = [
  [
    classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1, 10.0.0.2" } }),
    /the parameter nvmeAddress of the StorageClass a has a blank/,
  ],
  [
    classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1:4420" } }),
    /the parameter nvmeAddress of the StorageClass a .* has a port/,
  ],
  [classes({ name: "a" }, { name: "a" }), /two StorageClasses are called a/],
  [
    classes({ name: "a", default: true }, { name: "b", default: true }),
    /only one StorageClass can be the default: a, b/,
  ],
  [
    {
      ...directory({ storageClasses: [{ name: "b", default: true }] }),
      ...classes({ name: "a", default: true }),
    },
    /only one StorageClass can be the default: a, b/,
  ],
  [
    { ...directory({ storageClasses: [{ name: "a" }] }), ...classes({ name: "a" }) },
    /two StorageClasses are called a/,
  ],
  [{ volumeSnapshotClasses: [{ name: "a" }, { name: "a" }] }, /two VolumeSnapshotClasses are called a/],
  [
    { volumeSnapshotClasses: [{ name: "a", default: true }, { name: "b", default: true }] },
    /only one VolumeSnapshotClass can be the default/,
  ],
  [
    classes({ name: "a", parameters: { volumepath: "/x" } }),
    /the StorageClass a of storageClasses has the unknown parameter volumepath; known are /,
  ],
  [
    directory({ storageClasses: [{ name: "a", parameters: { volumePath: "/x" } }] }),
    /of directory\.storageClasses has the unknown parameter volumePath/,
  ],
  [
    classes({ name: "a", parameters: { encrypted: "true" } }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  [
    classes({ name: "a", parameters: { encrypted: true } }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  ...["True", "yes", "1"].map((text) =>
    [encrypted({ encrypted: text }), /the parameter encrypted: .*, which can be true or false/] as const
  ),
  [encrypted({ [`${secretKey}name`]: "s" }), /the StorageClass a is encrypted and has no Secret/],
  [
    encrypted({ [`${secretKey}name`]: "s", [`${secretKey}namespace`]: "n" }),
    /the StorageClass a is encrypted and has no Secret .* for stage and publish/,
  ],
  [
    encrypted({ [`${secretKey}name`]: "", [`${secretKey}namespace`]: "n" }),
    /the StorageClass a is encrypted and has no Secret/,
  ],
  [classes({ name: "a", encryptionSecret: { name: "s" } }), /missing property 'namespace'/],
  [classes({ name: "a", encryptionSecret: { namespace: "n" } }), /missing property 'name'/],
  [
    {
      ...classes({
        name: "a",
        encryptionSecret: { name: "s", namespace: "n" },
        parameters: { encrypted: "false" },
      }),
    },
    /the StorageClass a has an encryptionSecret, which sets the parameter encrypted/,
  ],
  [classes({ name: "a", parameters: { VolumePath: "/x" } }), /unknown parameter VolumePath/],
  [
    classes({ name: "a", parameters: { "csi.storage.k8s.io/fstyp": "xfs" } }),
    /unknown parameter csi\.storage/,
  ],
  [
    classes({ name: "a", parameters: { "csi.storage.k8s.io/fstype": "btrfs" } }),
    /the StorageClass a has the parameter csi.storage.k8s.io\/fstype: btrfs, which can be ext4 or xfs/,
  ],
  [
    classes({ name: "a", parameters: { volumePath: "/a/b" } }),
    /volumePath: \/a\/b, and the router's basePaths are/,
  ],
  [
    {
      router: {},
      ...routers({ basePaths: ["/a"] }),
      ...classes({ name: "a", parameters: { volumePath: "/b" } }),
    },
    /volumePath: \/b, and the router's basePaths are \/a/,
  ],
  [classes({ name: "a", fsType: "btrfs" }), /fsType': value must be one of/],
  [
    { router: {}, ...routers({}), ...classes({ name: "c", parameters: { backend: "b" } }) },
    /the StorageClass c has the parameter backend: b, and the routers are a/,
  ],
  [
    classes({ name: "c", parameters: { backend: "nas" } }),
    /parameter backend: nas, and the routers are default/,
  ],
  [
    classes({ name: "a", fsType: "xfs", parameters: { "csi.storage.k8s.io/fstype": "xfs" } }),
    /the StorageClass a has fsType, which sets the parameter/,
  ],
];

const accepted: readonly object[] = [
  { router: {}, ...routers({ default: false }), ...classes({ name: "c", parameters: { backend: "a" } }) },
  { ...classes({ name: "c", parameters: { backend: "nas" } }), controller: { extraArgs: ["--backend=nas"] } },
  classes({ name: "c", parameters: { backend: "default" } }),
  directory({ storageClasses: [{ name: "b", parameters: { addresses: "10.0.0.1,10.0.1.3:2049" } }] }),
  classes({ name: "a", parameters: { nvmeAddress: "10.0.0.1,10.0.0.2", nvmePort: 4420 } }),
  classes({ name: "a", default: true }, { name: "b" }),
  {
    ...classes({ name: "a", parameters: { volumePath: "/a/b", "csi.storage.k8s.io/fstype": "xfs" } }),
    router: { address: "10.0.0.1", basePaths: ["/c", "/a/b"] },
  },
  {
    ...classes({ name: "a", parameters: { volumePath: "/a/b" } }),
    controller: { extraArgs: ["--base-path=/a/b"] },
  },
  {
    router: {},
    ...routers({ basePaths: ["/a"] }),
    ...classes({ name: "a", parameters: { volumePath: "/a" } }, {
      name: "b",
      parameters: { volumePath: "/a", backend: "a" },
    }),
  },
  classes({ name: "a", encryptionSecret: { name: "s", namespace: "n" } }),
  classes({
    name: "a",
    parameters: { encrypted: "true", ...secret },
  }),
  classes({ name: "a", parameters: { encrypted: "false" } }),
];

valuesTests(refused, accepted);

/** The texts of a list in one of the chart's files. */
function listed(file: string, name: string): readonly string[] {
  const text = readDeployFile(`chart/templates/${file}.tpl`);
  const [, list] = new RegExp(`\\$${name} := (?:concat \\()?\\(?list ([^)}]*)`).exec(text)!;
  return [...list!.matchAll(/"([^"]*)"/g)].map(([, one]) => one!).toSorted();
}

const namesOf = (table: FlagTable) =>
  Object.entries(table).flatMap(([name, { aliases = [] }]) => [name, ...aliases]).toSorted();

Deno.test("the chart knows each flag, each parameter of a StorageClass and each kubelet folder that the driver does", () => {
  assert.deepEqual(listed("_validate_classes", "own"), parameterNames.toSorted());
  assert.deepEqual(
    listed("_validate_classes", "ofDirectories"),
    Object.keys(directoryParameterHelp).toSorted(),
  );
  assert.deepEqual(listed("_validate", "folders"), kubeletFolders.toSorted());
  assert.deepEqual(listed("_validate_arguments", "serve"), namesOf(serveFlags));
  assert.deepEqual(listed("_validate_arguments", "simulator"), namesOf(simulatorFlags));
  const ofRouters = Object.entries(routerFlags).filter(([, { key }]) => key !== undefined);
  assert.deepEqual(listed("_validate_arguments", "ofRouters"), namesOf(Object.fromEntries(ofRouters)));
  const chartOwn = listed("_validate_arguments", "chartOwn");
  assert.deepEqual(chartOwn.filter((name) => !Object.hasOwn(serveFlags, name)), []);
});

/** Parameters that are judged by the router and other parameters too. */
const judgedElsewhere = ["backend", "volumePath", "nvmeAddress", "rdsAddress", "sshPort", "nqnPrefix"];
/** What the chart leaves to the driver. */
const leftToDriver = ["fsLabel", "mkfsOptions"];
const samples = [
  ...[
    "",
    "true",
    "false",
    "True",
    "maybe",
    "auto",
    "multipath",
    "none",
    "preen",
    "off",
    "ext4",
    "xfs",
    "btrfs",
  ],
  ...[
    "-2",
    "-1",
    "0",
    "1",
    "29",
    "30",
    "32",
    "31",
    "99",
    "100",
    "256",
    "257",
    "1024",
    "1025",
    "3600",
    "3601",
  ],
  ...["10000", "10001", "65535", "65536", "86400", "86401", "01", "1.5"],
];

chartTest("the chart takes of each parameter of a StorageClass what the driver takes", () => {
  const defaults = {
    backend: "default",
    basePaths: ["/p"],
    nvmeAddress: "",
    nvmePort: 4420,
    nqnPrefix: "",
    routerAddress: "",
    routerPort: 22,
  };
  const takes = (key: string, value: string) => {
    try {
      parseParameters({ ...key === "encrypted" ? {} : { encrypted: "true" }, [key]: value }, defaults);
      return true;
    } catch {
      return key === "deviceLayer" && value === "multipath";
    }
  };
  const trials = parameterNames.filter((key) => ![...judgedElsewhere, ...leftToDriver].includes(key))
    .flatMap((key) => samples.map((value) => ({ key, value })));
  const { complaint } = render({
    values: withAddress(classes(...trials.map(({ key, value }, at) => ({
      name: `c${at}`,
      parameters: { ...secret, [key]: value },
    })))),
  });
  for (const [at, { key, value }] of trials.entries()) {
    const isRefused = complaint.includes(`the StorageClass c${at} has the parameter ${key}: `);
    assert.equal(isRefused, !takes(key, value), `${key}=${value}`);
  }
});
