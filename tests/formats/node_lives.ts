// What a node writes of a volume in the course of its life, each file with the moment at which it is written.
import type { StageRequest } from "../../src/node/stage/wish.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { block, ext4, FakeNode, nqn, stagingPath } from "../fakes/node_deps.ts";

/** A file that a node has written. */
export interface Written {
  /** The life, and what is done next. */
  readonly moment: string;
  readonly path: string;
  /** Its JSON on one line. */
  readonly text: string;
}

/** A call of a life, and what it is about to do after each file that it writes. */
type Step = readonly [act: (node: FakeNode) => Promise<unknown>, moments: readonly string[]];

interface Life {
  readonly name: string;
  readonly prepare?: (node: FakeNode) => void;
  readonly steps: readonly Step[];
}

const stages =
  (change: Partial<StageRequest> = {}, context: Record<string, string> = {}) => (node: FakeNode) =>
    node.stage({ capability: ext4, ...change }, context);

const uniqueId = "0123456789abcdef0123456789abcdef";
const filesystemUuid = "0a0b0c0d-0a0b-0c0d-0a0b-0a0b0c0d0e0f";
const secrets = { encryptionPassphrase: "correct horse battery staple" };
const xfs: Capability = { access: "mount", filesystem: "xfs", mode: "single-node-writer" };
const own = { path: "/dev/loop4", deviceNumber: "7:4", uniqueId };
const second = { id: "second/pvc-1", nqn: nqn.replace("pvc-1", "second:pvc-1") };

const lives: readonly Life[] = [
  {
    name: "a new file system",
    steps: [
      [stages({ mountFlags: ["noatime"] }, { nvmeAddress: "10.0.0.1,fd00::1" }), [
        "connect",
        "make a file system",
        "mount it",
        "answer the stage",
      ]],
      [(node) => node.publish(), ["bind it"]],
      [(node) => node.unpublish(), ["answer the unpublish"]],
      [(node) => node.unstage(), ["unmount it", "forget the rest"]],
      [stages(), ["connect again", "mount it again", "answer the second stage"]],
    ],
  },
  {
    name: "an encrypted file system",
    steps: [
      [stages({ volumeContext: { encrypted: "true" }, secrets }, { encrypted: "true" }), [
        "connect",
        "write a header",
        "use the mapping",
        "make a file system",
        "mount it",
        "answer the stage",
      ]],
    ],
  },
  {
    name: "with a device layer and checksums",
    prepare: (node) => void Object.assign(node.device, { content: "ext4", filesystemUuid }),
    steps: [
      [stages({ volumeContext: { deviceLayer: "multipath", hdrDigest: "true", ctrlLossTmo: "600" } }), [
        "connect",
        "mount it",
        "answer the stage",
      ]],
    ],
  },
  {
    name: "only read, with a log to replay",
    prepare: (node) => void Object.assign(node.device, { content: "ext4", dirty: true }),
    steps: [
      [stages({}, { readonly: "true", mayFormat: "false", mayReplay: "true" }), [
        "connect",
        "replay the log",
        "mount it",
        "answer the stage",
      ]],
    ],
  },
  {
    name: "a raw device, only read",
    prepare: (node) => void (node.device.content = "garbage"),
    steps: [
      [stages({ capability: block }, { mayFormat: "false" }), ["connect", "answer the stage"]],
      [(node) => node.publish({ capability: block, readOnly: true }), ["bind it"]],
      [async (node) => {
        await node.unpublish();
        node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
        node.addMount(node.device.deviceNumber, stagingPath);
        node.offered = () => [];
        await node.unstage().catch(() => {});
      }, ["answer the unpublish", "wait for a target that does not offer it"]],
    ],
  },
  {
    name: "of one of several routers",
    prepare: (node) => void node.devices.set(second.nqn, node.newDevice({ ...own, content: "xfs" })),
    steps: [
      [
        (node) => node.stage({ volumeId: second.id, capability: xfs }, { nqn: second.nqn }),
        ["connect", "mount it", "answer the stage"],
      ],
    ],
  },
];

/** All files that those lives write, in their order. */
export async function writtenByNodes(): Promise<readonly Written[]> {
  const all: Written[] = [];
  for (const { name, prepare, steps } of lives) {
    const node = new FakeNode();
    node.device.uniqueId = uniqueId;
    prepare?.(node);
    const write = node.paths.writeFile.bind(node.paths);
    for (const [act, moments] of steps) {
      const rest = [...moments];
      node.paths.writeFile = async (path, text, mode) => {
        await write(path, text, mode);
        if (!path.startsWith("/state/")) return;
        all.push({
          moment: `${name}: ${rest.shift() ?? "unexpected"}`,
          path,
          text: JSON.stringify(JSON.parse(text)),
        });
      };
      await act(node);
      if (rest.length > 0) throw new Error(`${name} writes nothing to ${rest[0]}`);
    }
  }
  return all;
}
