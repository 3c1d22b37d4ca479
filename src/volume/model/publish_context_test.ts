import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { formatPublishContext, type PublishContext } from "./publish_context.ts";
import { filesystemNamed, parsePublishContext, parsePublishedExport } from "./parse_context.ts";

const context = {
  nvmeAddress: "10.0.0.1",
  nvmePort: "4420",
  nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
  epoch: "1-0a0b0c0d",
  size: "1073741824",
  readonly: "false",
  mayFormat: "true",
  imported: "false",
  nvme_address: "10.0.0.1",
};

Deno.test("parsePublishContext() reads every key and ignores others", () => {
  assert.deepEqual(parsePublishContext(context, "pvc-1"), {
    nqn: context.nqn,
    epoch: context.epoch,
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 1073741824n,
    readOnly: false,
    mayFormat: true,
    imported: false,
    claim: undefined,
    mayReplay: false,
    machine: undefined,
    needsLayer: false,
    encrypted: false,
  });
});

Deno.test("parsePublishContext() reads the name of a claim, and leaves out an invalid one", () => {
  const claimOf = (claim: string) => parsePublishContext({ ...context, claim }, "pvc-1").claim;
  assert.deepEqual(claimOf("apps/data-0.web"), { namespace: "apps", name: "data-0.web" });
  for (const wrong of ["", "data", "apps/", "apps/a b", "apps/$(id)", "a/b/c"]) {
    assert.equal(claimOf(wrong), undefined, wrong);
  }
});

Deno.test("parsePublishContext() takes absent flags as false", () => {
  const { readonly: _r, mayFormat: _m, ...rest } = context;
  const parsed = parsePublishContext(rest, "pvc-1");
  assert.deepEqual([parsed.readOnly, parsed.mayFormat], [false, false]);
});

Deno.test("parsePublishContext() accepts the NQN without epoch that a migrated volume keeps", () => {
  const nqn = "nqn.2000-02.com.mikrotik:pvc-1";
  assert.equal(parsePublishContext({ ...context, nqn }, "pvc-1").nqn, nqn);
});

const wrong: readonly [string, string][] = [
  ["nvmeAddress", ""],
  ["nvmeAddress", "-x"],
  ["nvmeAddress", "a b"],
  ["nvmePort", "0"],
  ["nvmePort", "65536"],
  ["nvmePort", "abc"],
  ["nqn", ""],
  ["nqn", "nqn.2000-02.com.mikrotik:a/b"],
  ["nqn", "nqn.2000-02.com.mikrotik:../pvc-1"],
  ["nqn", `nqn.2000-02.com.mikrotik:${"x".repeat(200)}:pvc-1:1-0a0b0c0d`],
  ["epoch", ""],
  ["epoch", "1 2"],
  ["size", "0"],
  ["size", "-5"],
  ["size", "1e9"],
  ["size", ""],
  ["readonly", "yes"],
  ["mayFormat", "1"],
  ["mayReplay", "yes"],
  ["mayFormat", ""],
  ["encrypted", ""],
  ["encrypted", "1"],
  ["layer", ""],
  ["layer", "1"],
  ["machine", ""],
  ["machine", "0A0B0C0D"],
  ["machine", "0a0b0c0"],
  ["machine", "none"],
];

for (const [key, value] of wrong) {
  Deno.test(`parsePublishContext() throws invalid for ${key}=${JSON.stringify(value.slice(0, 40))}`, () => {
    const parse = () => parsePublishContext({ ...context, [key]: value }, "pvc-1");
    assert.throws(parse, refusal("invalid", new RegExp(key)));
  });
}

Deno.test("parsePublishContext() throws identity-mismatch for the NQN of another volume, or of another epoch", () => {
  const prefix = "nqn.2000-02.com.mikrotik";
  const others = [[`${prefix}:pvc-11:1-0a0b0c0d`], [`${prefix}:pvc-1:2-0a0b0c0d`], [
    context.nqn,
    "1-0a0b0c0d",
  ]];
  for (const [nqn, id = "pvc-1"] of others) {
    const parse = () => parsePublishContext({ ...context, nqn: nqn! }, id);
    assert.throws(parse, refusal("identity-mismatch"), nqn);
  }
});

const nqn = "nqn.2000-02.com.mikrotik:pvc-1";
/** What the legacy driver's controller publishes. */
const earlier = { nvme_address: "10.0.0.1", nvme_port: "4420", nvme_nqn: nqn, fs_type: "ext4" };
/** The volume context of its volumes, in which it repeats some values. */
const volume = { rdsAddress: "10.0.0.1", nvmeAddress: "10.0.0.9", nvmePort: "4421", nqn };

Deno.test("parsePublishContext() takes a context with any key of this driver for no legacy one, whatever else is in it", () => {
  for (const own of [{ ...earlier, epoch: "1-0a0b0c0d" }, { ...earlier, size: "1" }]) {
    assert.throws(() => parsePublishContext(own, "pvc-1", volume), refusal("invalid", /key=nqn/));
  }
  assert.throws(() => parsePublishContext({}, "pvc-1"), refusal("invalid", /key=nqn/));
});

Deno.test("parsePublishContext() reads the legacy driver's, the publish context before the volume context", () => {
  const parsed = {
    nqn,
    epoch: "0-00000000",
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 0n,
    readOnly: false,
    mayFormat: false,
    imported: true,
    claim: undefined,
    mayReplay: false,
    needsLayer: false,
    encrypted: false,
    machine: undefined,
  };
  assert.deepEqual(parsePublishContext(earlier, "pvc-1"), parsed);
  assert.deepEqual(parsePublishContext(earlier, "pvc-1", volume), parsed);
  assert.deepEqual(parsePublishContext({}, "pvc-1", volume), {
    ...parsed,
    addresses: ["10.0.0.9"],
    port: 4421,
  });
});

Deno.test("parsePublishContext() refuses a legacy context that is incomplete, or another volume's", () => {
  const refused = (context: Record<string, string>, kind: "invalid" | "identity-mismatch") =>
    assert.throws(() => parsePublishContext(context, "pvc-1"), refusal(kind));
  refused({ ...earlier, nvme_nqn: `${nqn}1` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: `${nqn}:1-0a0b0c0d` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: "" }, "invalid");
  refused({ ...earlier, nvme_address: "" }, "invalid");
  refused({ ...earlier, nvme_port: "0" }, "invalid");
  // A context of this driver must have a size.
  refused({ ...context, size: "0" }, "invalid");
});

Deno.test("filesystemNamed() goes by the volume, then by what the legacy driver published", () => {
  assert.equal(filesystemNamed({ fs_type: "xfs" }, { fsType: "ext4" }), "ext4");
  assert.equal(filesystemNamed({ fs_type: "xfs" }, {}), "xfs");
  assert.equal(filesystemNamed({}, {}), "");
});

const written: PublishContext = {
  nqn: context.nqn,
  epoch: context.epoch,
  addresses: ["10.0.0.1", "fd00::1"],
  port: 4420,
  sizeBytes: 1n << 30n,
  readOnly: true,
  mayFormat: false,
  imported: true,
  claim: { namespace: "apps", name: "data" },
  mayReplay: true,
  machine: "0a0b0c0d",
  needsLayer: false,
  encrypted: false,
};

for (
  const above of [{}, { needsLayer: true }, { encrypted: true }, { claim: undefined, machine: undefined }]
) {
  Deno.test(`parsePublishContext() reads what formatPublishContext() wrote: ${Object.keys(above).join()}`, () => {
    const full = { ...written, ...above };
    const text = formatPublishContext(full, "xfs");
    assert.deepEqual(parsePublishContext({ ...text, later: "1" }, "pvc-1"), full);
    assert.equal(filesystemNamed(text, {}), "xfs");
  });
}

Deno.test("formatPublishContext() leaves the legacy driver's NQN out of a layered or encrypted volume's context", () => {
  const legacyNqn = (above: Partial<PublishContext>) =>
    formatPublishContext({ ...written, ...above }, "")["nvme_nqn"];
  assert.equal(legacyNqn({}), written.nqn);
  assert.equal(legacyNqn({ needsLayer: true }), undefined);
  assert.equal(legacyNqn({ encrypted: true }), undefined);
});

Deno.test("parsePublishedExport() reads what the cluster compares with the router, and takes any other value as absent", () => {
  const epoch = { counter: 1, nonce: "0a0b0c0d" };
  const known = parsePublishedExport(formatPublishContext(written, ""));
  assert.deepEqual(known, { epoch, nqn: written.nqn, port: 4420 });
  const none = { epoch: undefined, nqn: undefined, port: undefined };
  assert.deepEqual([parsePublishedExport({}), parsePublishedExport(earlier)], [none, none]);
  assert.deepEqual(parsePublishedExport({ epoch: "1", nvmePort: "high" }), none);
});
