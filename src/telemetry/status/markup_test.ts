import assert from "node:assert/strict";
import { markup } from "./markup.ts";

Deno.test("markup escapes every value, and puts markup within markup in as it is", () => {
  const name = `<b onclick="x()">&'`;
  assert.equal(
    String(markup`<p title="${name}">${name}${markup`<i>${1}</i>`}${undefined}${["a<", markup`<br>`]}</p>`),
    `<p title="&lt;b onclick=&quot;x()&quot;&gt;&amp;&#39;">&lt;b onclick=&quot;x()&quot;&gt;&amp;&#39;<i>1</i>a&lt;<br></p>`,
  );
});

Deno.test("markup shows what would turn the text around, or hide in it", () => {
  assert.equal(String(markup`${"a\u202eb\u0000c\u2066d\u001b[31m"}`), "a\ufffdb\ufffdc\ufffdd\ufffd[31m");
  assert.equal(String(markup`${"ä € 漢\n"}`), "ä € 漢\n");
});
