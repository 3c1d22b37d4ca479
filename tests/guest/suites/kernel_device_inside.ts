import assert from "node:assert/strict";
import {
  callWithin,
  type GuestNode,
  GuestVolume,
  NodeTests,
  refusal,
  sh,
  timed,
  until,
} from "../kit/node.ts";
import { block, call, ext4, run, xfs } from "../../node/harness.ts";

const small = 32n << 20n;
/** xfs is made no smaller. */
const smallest = { ext4: small, xfs: 320n << 20n };

async function sizeOf(path: string): Promise<bigint> {
  return BigInt(await sh(`stat -f -c '%S * %b' ${path} | sed 's/.*/echo $((&))/' | sh`));
}

async function deviceSize(node: GuestNode, volume: GuestVolume): Promise<bigint> {
  return BigInt((await run("blockdev", "--getsize64", await node.device(volume))).trim());
}

/** Devices that grow and shrink under a volume. */
export const sizeRows = new NodeTests();

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };
  sizeRows.add(`${filesystem} grows online: the device is scanned again and waited for`, async (node) => {
    const size = smallest[filesystem];
    const volume = new GuestVolume(node, "pvc-1", size);
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    const path = node.target("pvc-1");
    await Deno.writeTextFile(`${path}/data`, "kept");
    const before = await sizeOf(path);
    volume.grow(size * 2n);
    assert.equal(await deviceSize(node, volume), size, "nobody has told the kernel");
    const [answered, tookMs] = await timed(node.grow(volume, size * 2n, path));
    assert.equal(answered, size * 2n);
    const after = await sizeOf(path);
    assert.ok(after > before * 18n / 10n, `${before} -> ${after}`);
    assert.equal(await Deno.readTextFile(`${path}/data`), "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
    if (filesystem === "xfs") return `${before >> 20n} -> ${after >> 20n} MiB in ${tookMs} ms`;
    volume.grow(size * 4n);
    await node.stage(volume, { capability });
    const later = await sizeOf(node.staging("pvc-1"));
    assert.ok(later > after * 18n / 10n, `${after} -> ${later}`);
    await node.unstage(volume);
    return `${before >> 20n} -> ${after >> 20n} MiB in ${tookMs} ms; grown while disconnected, ${
      later >> 20n
    } MiB at the next stage`;
  });
}

sizeRows.add(
  "a raw device grows online, and no file system tool is run; one that does not grow is not waited for for ever",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await node.stage(volume, { capability: block });
    await node.publish(volume, { capability: block });
    await sh(`echo kept | dd of=${node.target("pvc-1")} bs=4k oflag=direct conv=sync,notrunc status=none`);
    const [answered, tookMs] = await timed(node.grow(volume, small * 2n, node.target("pvc-1")));
    assert.equal(answered, small * 2n);
    assert.equal(await run("blockdev", "--getsize64", node.target("pvc-1")), `${small * 2n}\n`);
    assert.equal(await sh(`head -c 4 ${node.target("pvc-1")}`), "kept");
    const range = { requiredBytes: small * 3n, limitBytes: 0n };
    const request = { volumeId: "pvc-1", volumePath: node.target("pvc-1"), range };
    const [why, waitedMs] = await timed(
      refusal(
        node.service.expand(request, callWithin(3_000)),
        "precondition",
        new RegExp(`its device keeps its size: .* size=${small * 2n}`),
      ),
    );
    await node.unpublish(volume);
    await node.unstage(volume);
    return `${small * 2n} bytes after ${tookMs} ms; not grown: ${
      why.slice(0, 70)
    }…, after ${waitedMs} ms of 3000`;
  },
);

sizeRows.add(
  "a device smaller than its record is not the volume: no publish, no stage, no expand",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await node.stage(volume, { capability: block });
    await node.publish(volume, { capability: block });
    await Deno.truncate(volume.image, Number(small / 2n));
    const [controller] = await node.connector.connections(volume.nqn, call());
    await sh(`nvme ns-rescan /dev/${controller!.name}`);
    await until("shrunk", async () => await deviceSize(node, volume) === small / 2n);
    const path = node.target("pvc-1");
    const publish = node.publish(volume, { capability: block, targetPath: node.target("pvc-1", "pod-2") });
    const said = await refusal(publish, "identity-mismatch", /expected size>=33554432 found size=16777216/);
    const range = { requiredBytes: small / 2n, limitBytes: 0n };
    const expand = node.service.expand({ volumeId: "pvc-1", volumePath: path, range }, call());
    await refusal(expand, "identity-mismatch", /size=16777216/);
    assert.deepEqual(await node.problems(volume), ["DeviceTooSmall"]);
    await refusal(node.stage(volume, { capability: block }), "identity-mismatch", /size=16777216/);
    await node.unpublish(volume);
    await node.unstage(volume);
    await refusal(node.stage(volume, { capability: ext4 }), "identity-mismatch", /size=16777216/);
    await sh(`cmp -n ${small / 2n} ${volume.image} /dev/zero`);
    assert.deepEqual(await node.states(volume), []);
    return said;
  },
);

/** Namespaces that go away and come back as others. */
export const namespaceRows = new NodeTests();

namespaceRows.add(
  "a namespace that goes and comes back while it is mounted is another device: no publish before a restage",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
    await sh(`sync -f ${node.target("pvc-1")}`);
    const was = await node.connector.find(volume.nqn, call());
    volume.nvmet.setEnabled(volume.nqn, false);
    await until("gone", async () => await node.deviceNumber(volume) === undefined);
    assert.deepEqual(await node.states(volume), ["live"]);
    const write = await sh(
      `dd if=/dev/zero of=${node.target("pvc-1")}/more bs=4k count=1 conv=fsync 2>&1 || :`,
    );
    // Where ext4 cannot read a bitmap any more, it takes the group for full.
    assert.match(write, /Input\/output error|Read-only file system|No space left on device/);
    assert.ok((await node.problems(volume)).includes("DeviceMissing"));
    volume.nvmet.setEnabled(volume.nqn, true);
    await until(
      "another",
      async () => ![undefined, was?.deviceNumber].includes(await node.deviceNumber(volume)),
    );
    const is = await node.connector.find(volume.nqn, call());
    assert.ok((await node.problems(volume)).includes("DeviceMismatch"));
    const again = { targetPath: node.target("pvc-1", "pod-2") };
    const said = await refusal(
      node.publish(volume, again),
      "precondition",
      /another one since it was staged.*delete the pods/,
    );
    const stats = node.service.stats("pvc-1", node.target("pvc-1"), call());
    await refusal(stats, "unavailable", /no longer the staged one|does not answer|Cannot/);
    await refusal(node.stage(volume), "in-use", /is mounted at/);
    await node.unpublish(volume);
    await node.unstage(volume);
    await node.stage(volume);
    await node.publish(volume);
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
    return `${was?.path} ${was?.deviceNumber}, then ${is?.path} ${is?.deviceNumber}: ${
      said.slice(0, 150)
    }; restaged, data there`;
  },
);

namespaceRows.add(
  "a target that comes back with another namespace UUID is live and has no device: said, and restaged",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    const capability = block;
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    await sh(`echo kept | dd of=${node.target("pvc-1")} bs=4k oflag=direct conv=sync,notrunc status=none`);
    volume.nvmet.unlink(volume.nqn);
    volume.nvmet.setUuid(volume.nqn, "01234567-89ab-4cde-8f01-23456789abcd");
    volume.nvmet.link(volume.nqn);
    await until(
      "dropped",
      async () =>
        (await node.states(volume)).join() === "live" && await node.deviceNumber(volume) === undefined,
      30_000,
    );
    assert.deepEqual(await node.problems(volume), ["DeviceMissing"]);
    const said = await refusal(node.publish(volume, { capability }), "precondition", /device is gone/);
    const request = node.stageRequest(volume, { capability });
    const [stage, tookMs] = await timed(
      refusal(node.service.stage(request, callWithin(20_000)), "in-use", /delete the pods that use it/),
    );
    await node.unpublish(volume);
    await node.unstage(volume);
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    assert.equal(await sh(`head -c 4 ${node.target("pvc-1")}`), "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
    return `live without a device: ${said.slice(0, 55)}…; stage: ${
      stage.slice(0, 50)
    }… after ${tookMs} ms; restaged, data there`;
  },
);
