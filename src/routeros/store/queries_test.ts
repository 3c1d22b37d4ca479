import assert from "node:assert/strict";
import { createFilesQuery, disksQuery, filesQuery, holding } from "./queries.ts";

for (
  const [text, pattern] of [
    ["pvc-01ab", "pvc-01ab"],
    ["/snap-", "/snap-"],
    ["/v.1a/", "/v[.]1a/"],
    ["/pool/csi/v.img", "(^|/)pool/csi/v[.]img"],
    ["pvc-1.1a2b3c4d", "pvc-1[.]1a2b3c4d"],
    [".x.", "[.]x[.]"],
    ["a+b*c[d]^$\\(", "a.b.c.d....."],
    [`a"b c`, "a.b.c"],
  ] as const
) {
  Deno.test(`holding() finds what holds ${JSON.stringify(text)}`, () => {
    assert.equal(holding(text), pattern);
    assert.ok(new RegExp(holding(text)).test(`before ${text} behind`));
  });
}

Deno.test("holding() finds a whole path also where it is spelt without its slash", () => {
  const whole = new RegExp(holding("/pool/csi/v.img"));
  assert.deepEqual(
    ["pool/csi/v.img", "/pool/csi/v.img.1.part", "my-pool/csi/v.img"].map((path) => whole.test(path)),
    [
      true,
      true,
      false,
    ],
  );
});

Deno.test("holding() takes a dot for nothing but a dot", () => {
  assert.equal(new RegExp(holding("pvc-1.1a2b3c4d")).test("pvc-1-1a2b3c4d"), false);
});

const keys = "/file print detail as-value proplist=name,type,size where ";

Deno.test("filesQuery() asks by a part of the path", () => {
  assert.equal(filesQuery("/snap-1.").text, `${keys}name~"/snap-1[.]"`);
});

Deno.test("createFilesQuery() asks for file-name prefix, folder and snapshots, or for snapshots alone", () => {
  const wanted = { id: "v", filePrefix: "v.1a", folder: "/pool/csi" };
  assert.equal(createFilesQuery(wanted).text, `${keys}name~"v[.]1a" or name="pool/csi" or name~"/snap-"`);
  assert.equal(createFilesQuery({ ...wanted, folder: "" }).text, `${keys}name~"v[.]1a" or name~"/snap-"`);
  assert.equal(createFilesQuery(undefined).text, `${keys}name~"/snap-"`);
});

Deno.test("disksQuery() asks by slot, and by the file-name prefix in the path of the image", () => {
  const disks = "/disk print detail as-value where ";
  assert.equal(disksQuery("v").text, `${disks}slot="v" or mounted`);
  assert.equal(disksQuery("v", "v.1a").text, `${disks}slot="v" or file-path~"v[.]1a" or mounted`);
});
