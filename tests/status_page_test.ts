import assert from "node:assert/strict";
import { browserPath, photograph, type Picture, understood } from "./support/browser.ts";
import { create, gibibyte, publishRequest, rejectsWith } from "./support/controller_calls.ts";
import { status } from "@grpc/grpc-js";
import { longTest } from "./support/long.ts";
import { routerPassword, type Stack, startStack } from "./support/stack.ts";
import { eventually } from "./support/eventually.ts";

/** A folder to keep the pictures in, for whoever wants to look at them too. */
const kept = Deno.env.get("STATUS_PAGE_PICTURES");

/** A controller that has done something worth showing; answers the ids of its volumes. */
async function busy(stack: Stack): Promise<readonly string[]> {
  const { controller } = stack.clients;
  await stack.driver.seekRouter(new AbortController().signal);
  const shared = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" as const } };
  const ids = [
    await create(stack, "one"),
    await create(stack, "two", { volumeCapabilities: [shared] }),
    await create(stack, "three", { capacityRange: { requiredBytes: String(250n * gibibyte) } }),
  ];
  await controller.call("ControllerPublishVolume", publishRequest(ids[0]!));
  for (const node of ["node-1", "node-2"]) {
    await controller.call("ControllerPublishVolume", publishRequest(ids[1]!, node, shared));
  }
  await rejectsWith(
    status.FAILED_PRECONDITION,
    controller.call("ControllerPublishVolume", publishRequest(ids[0]!, "node-3")),
  );
  await controller.call("ListVolumes", {});
  await eventually(async () => (await statusOf(stack)).controller.attachments === 3);
  return ids;
}

async function statusOf(stack: Stack, query = "") {
  return await (await fetch(`${stack.driver.metricsUrl}/status.json${query}`)).json();
}

/** What a person would read, without markup and with single spaces. */
function textOf(page: string): string {
  return page.replace(/<style>.*<\/style>/s, "").replace(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&").replace(/\s+/g, " ");
}

function shareOf(picture: Picture, isMeant: (colour: readonly number[]) => boolean): number {
  let count = 0;
  for (let y = 0; y < picture.height; y += 3) {
    for (let x = 0; x < picture.width; x += 3) if (isMeant(picture.at(x, y))) count++;
  }
  return count / (Math.ceil(picture.height / 3) * Math.ceil(picture.width / 3));
}

/** The commands to the router by now, without those by which the controller looks every few seconds whether it answers. */
function commandsOf(stack: Stack): readonly string[] {
  return stack.log.filter((line) =>
    line.includes('"router command"') && !line.includes('"requestId":"readiness"')
  );
}

const isDark = (colour: readonly number[]) => Math.max(...colour) < 110;

longTest({
  name: "a browser shows the status page of a controller, on a desk and on a phone, light and dark",
  ignore: browserPath === undefined,
  fn: async () => {
    await using stack = await startStack();
    const ids = await busy(stack);
    const url = stack.driver.metricsUrl ?? assert.fail("nothing is served");
    const asked = commandsOf(stack);
    const text = textOf(await understood(url));
    for (
      const wording of [
        ...ids,
        "rds.csi.srvlab.io ready",
        "Volumes 3 0 with a problem",
        "Attachments 3 1 migration",
        "SSH session ready",
        "RDS2216, RouterOS 7.",
        "/storage-pool/metal-csi 3 volumes, 3 attachments, on the pool storage-pool of",
        "promised 252 GiB",
        "250 GiB no node",
        "AttachRefused",
        "Node node-3 was refused: Cannot publish the volume because another node holds it",
        "ControllerPublishVolume FAILED_PRECONDITION",
        "commands take",
      ]
    ) assert.ok(text.includes(wording), `${wording} is not in: ${text}`);

    const reads = [
      { name: "desk", width: 1200, height: 1250 },
      { name: "phone", width: 500, height: 3000 },
      { name: "dark", width: 1200, height: 1250, dark: true },
    ];
    for (const { name, ...reading } of reads) {
      const picture = await photograph(url, { ...reading, keepAt: kept && `${kept}/${name}.png` });
      assert.deepEqual([picture.width, picture.height], [reading.width, reading.height], name);
      const dark = shareOf(picture, isDark);
      // Letters and bars are a small part of a page, and not none of it.
      const isAsMeant = reading.dark ? dark > 0.6 && dark < 0.99 : dark > 0.005 && dark < 0.2;
      assert.ok(isAsMeant, `${name}: ${dark} of it is dark`);
    }
    assert.deepEqual(commandsOf(stack), asked, "who reads the page asks the router nothing");
  },
});

Deno.test("the status page reports a router that is away, and asks it nothing", async () => {
  await using stack = await startStack({ simulator: { users: [] } });
  await stack.clients.controller.call("GetCapacity", {}).then(
    () => assert.fail("the login was not refused"),
    () => {},
  );
  const { execs } = await stack.count();
  const response = await fetch(`${stack.driver.metricsUrl}/`);
  const text = textOf(await response.text());
  assert.ok(text.includes("not ready the router has not answered yet"), text);
  assert.match(text, /breaker open: calls are refused at once .* ago : it refused the login/i);
  assert.ok(!text.includes(routerPassword));
  assert.equal((await stack.count()).execs, execs);
});

Deno.test("status.json reports the same, and only the volumes that are asked for", async () => {
  await using stack = await startStack();
  const ids = await busy(stack);
  const { controller, driver, events: statusEvents, failedCalls } = await statusOf(stack);
  assert.deepEqual(driver.roles, ["controller"]);
  assert.deepEqual(
    controller.volumes.items.map(({ id }: { id: string }) => id),
    ids.toSorted(),
  );
  assert.deepEqual([controller.attachments, controller.migrations], [3, 1]);
  assert.equal(statusEvents[0].reason, "AttachRefused");
  assert.equal(failedCalls[0].code, "FAILED_PRECONDITION");
  const { requestId } = failedCalls[0];
  const logged = stack.log.filter((line) => line.includes(`"requestId":"${requestId}"`));
  assert.ok(
    logged.some((line) => line.includes("Cannot publish the volume")),
    "the log has the call by its id",
  );
  const found = await statusOf(stack, "?q=node-2");
  assert.deepEqual([found.controller.volumes.matching, found.controller.volumes.items[0].id], [1, ids[1]]);
});
