import assert from "node:assert/strict";
import { readDeployFile } from "../../tests/deploy/objects.ts";
import { imagesIn, withDigests } from "./chart_images.ts";

const [one, other] = ["1", "2"].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
const values = `image:
  repository: rds-csi # the driver's own
a:
  # -- Image of a.
  image: 127.0.0.1:5000/tools/a:v1.0.0
b:
  image: b:1.37
  pullPolicy: Always
c:
  image: example.net/c:v2@${one}
`;

Deno.test("imagesIn() finds every image of the chart but the driver's own", () => {
  assert.deepEqual(imagesIn(values), [
    { name: "127.0.0.1:5000/tools/a:v1.0.0", digest: undefined },
    { name: "b:1.37", digest: undefined },
    { name: "example.net/c:v2", digest: one },
  ]);
  const text = readDeployFile("chart/values.yaml");
  assert.equal(imagesIn(text).length, text.match(/^ *image: \S/gm)?.length);
});

Deno.test("withDigests() pins the base of the Dockerfile", async () => {
  const dockerfile = readDeployFile("image/Dockerfile");
  const [base] = imagesIn(dockerfile);
  const { values } = await withDigests(dockerfile, () => Promise.resolve(base?.digest ?? one));
  assert.deepEqual(imagesIn(values), [{ name: base?.name, digest: base?.digest ?? one }]);
  assert.match(values, /^ARG BASE=docker\.io\/library\/node:[\w.-]+@sha256:[0-9a-f]{64}$/m);
});

Deno.test("withDigests() pins what registries answer, changes nothing else, and says what they do not", async () => {
  const ask = (name: string) =>
    name.startsWith("b:") ? Promise.reject(new Error("no route to it")) : Promise.resolve(one);
  const pinned = await withDigests(values, ask);
  assert.equal(pinned.values, values.replace("a:v1.0.0", `a:v1.0.0@${one}`));
  assert.deepEqual(pinned.problems, ["b:1.37: no route to it"]);
  assert.deepEqual(await withDigests(pinned.values, () => Promise.resolve(one)), {
    values: pinned.values.replace("b:1.37", `b:1.37@${one}`),
    problems: [],
  });
});

Deno.test("withDigests() keeps a pin whose tag was moved, and says so", async () => {
  const found = await withDigests(`image: example.net/c:v2@${one}`, () => Promise.resolve(other));
  assert.equal(found.values, `image: example.net/c:v2@${one}`);
  assert.match(
    found.problems.join(),
    /example\.net\/c:v2 is pinned as sha256:1+, and its registry has sha256:2+: remove/,
  );
});
