import assert from "node:assert/strict";
import { headerBytes, headerLabel, usableBytes } from "../../../../src/volume/model/encryption.ts";
import type { Capability } from "../../../../src/volume/model/capabilities.ts";
import { systemRandom } from "../../../../src/host/random.ts";
import { type ExportAccess, newIdentity } from "../../../../src/simulator/model/exports.ts";
import { readChain } from "../../../../src/node/chain/chain.ts";
import type { NvmetExporter } from "../../../../src/simulator/model/nvmet_exporter.ts";
import { callContext, freshNode, type NodeCall, nqnPrefix } from "./node.ts";
/** What is on a volume. */
export type Kind = "ext4" | "xfs" | "block";

const mib = 1n << 20n;
/** As small as each kind goes, and by how much it grows. */
const sizes: Readonly<Record<Kind, { readonly first: bigint; readonly growth: bigint }>> = {
  ext4: { first: 48n * mib, growth: 16n * mib },
  xfs: { first: 320n * mib, growth: 32n * mib },
  block: { first: 16n * mib, growth: 4n * mib },
};

/** The passphrase of encrypted volumes. */
const passphrase = "correct horse battery staple";
/** The name under which an image is decrypted to be checked. */
const checkedName = "checked";

/** Bytes of one piece of data. */
const pieceBytes = 128 * 1024;
const port = 4420;

/** Where everything of a test lies. */
export interface Place {
  /** The images. */
  readonly images: string;
  readonly state: string;
  readonly kubelet: string;
  readonly exporter: NvmetExporter;
  /** What the StorageClass says. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** A volume that the guest's own target exports, and the data that was written to it. */
export class Volume {
  readonly id: string;
  readonly kind: Kind;
  readonly #location: Place;
  readonly #data = new Map<string, Uint8Array<ArrayBuffer>>();
  #epoch = 1;
  #sizeBytes: bigint;
  #identity = newIdentity(systemRandom);

  constructor(location: Place, id: string, kind: Kind) {
    this.#location = location;
    this.id = id;
    this.kind = kind;
    this.#sizeBytes = sizes[kind].first + (this.#isEncrypted ? headerBytes : 0n);
    Deno.writeFileSync(this.image, new Uint8Array());
    Deno.truncateSync(this.image, Number(this.#sizeBytes));
    this.export();
  }

  get image(): string {
    return `${this.#location.images}/${this.id}.img`;
  }

  get staging(): string {
    return `${this.#location.kubelet}/staging/${this.id}`;
  }

  /** Where it is published; the folder above it is the kubelet's. */
  get target(): string {
    return `${this.#location.kubelet}/pods/${this.id}`;
  }

  get capability(): Capability {
    return this.kind === "block"
      ? { access: "block", mode: "single-node-writer" }
      : { access: "mount", filesystem: this.kind, mode: "single-node-writer" };
  }

  get #epochText(): string {
    return `${this.#epoch}-0a0b0c0d`;
  }

  get nqn(): string {
    return `${nqnPrefix}:${this.id}:${this.#epochText}`;
  }

  get #isEncrypted(): boolean {
    return this.#location.parameters["encrypted"] === "true";
  }

  /** What a user of the volume has of it, in bytes. */
  get #usableBytes(): bigint {
    return usableBytes(this.#sizeBytes, this.#isEncrypted);
  }

  get #publishContext(): Record<string, string> {
    return {
      nvmeAddress: "127.0.0.1",
      nvmePort: String(port),
      nqn: this.nqn,
      ...this.#isEncrypted ? { encrypted: "true" } : {},
      epoch: this.#epochText,
      size: String(this.#sizeBytes),
      readonly: "false",
      mayFormat: String(this.#epoch === 1),
    };
  }

  call(method: NodeCall["method"], readOnly = false): NodeCall {
    const { id: volumeId, staging: stagingPath, target: targetPath, capability } = this;
    const publishContext = this.#publishContext;
    const mountFlags: readonly string[] = [];
    // Newer kernels give up what is refused when they try again: no call may find it now there, now gone.
    const volumeContext = { ...this.#location.parameters, reconnectDelay: "60" };
    switch (method) {
      case "stage":
        return {
          method,
          request: {
            volumeId,
            stagingPath,
            capability,
            mountFlags,
            publishContext,
            volumeContext,
            secrets: { encryptionPassphrase: passphrase },
          },
        };
      case "publish":
        return {
          method,
          request: {
            volumeId,
            stagingPath,
            targetPath,
            capability,
            mountFlags,
            readOnly,
            publishContext,
            volumeContext,
          },
        };
      case "expand":
        return {
          method,
          request: {
            volumeId,
            volumePath: targetPath,
            range: { requiredBytes: this.#usableBytes, limitBytes: 0n },
          },
        };
      case "unpublish":
        return { method, request: { volumeId, targetPath } };
      case "unstage":
        return { method, request: { volumeId, stagingPath } };
    }
  }

  export(): void {
    this.#identity = newIdentity(systemRandom);
    this.#location.exporter.serve(this.nqn, this.image, this.#access);
  }

  get #access(): ExportAccess {
    return { port, hosts: undefined, sizeBytes: this.#sizeBytes, identity: this.#identity };
  }

  withdraw(): void {
    this.#location.exporter.withdraw(this.nqn);
  }

  /** It is taken away from whoever has it, and given under another name. */
  nextEpoch(): void {
    this.withdraw();
    this.#epoch++;
    this.export();
  }

  grow(): void {
    this.#sizeBytes += sizes[this.kind].growth;
    Deno.truncateSync(this.image, Number(this.#sizeBytes));
    this.#location.exporter.change(this.nqn, this.#access);
  }

  /** Writes one more piece of data where it is staged, to its end: then it is on the target. */
  async write(): Promise<void> {
    const name = `piece-${this.#data.size}`;
    const bytes = new Uint8Array(pieceBytes);
    for (let at = 0; at < bytes.length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
    const path = await this.#stagedAt();
    const file = await Deno.open(this.kind === "block" ? path : `${path}/${name}`, {
      write: true,
      create: this.kind !== "block",
    });
    try {
      await file.seek(this.#offset(this.#data.size), Deno.SeekMode.Start);
      for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
      await file.sync();
    } finally {
      file.close();
    }
    if (this.kind !== "block") await sh(`sync -f '${path}'`);
    this.#data.set(name, bytes);
  }

  /** Throws unless all data is there, and nothing else. */
  async verify(where: "staging" | "target"): Promise<void> {
    const path = where === "target" ? this.target : await this.#stagedAt();
    const names = [...this.#data.keys()];
    if (this.kind !== "block") {
      const found = [...Deno.readDirSync(path)].map(({ name }) => name).filter((name) =>
        name !== "lost+found"
      );
      assert.deepEqual(found.sort(), names.toSorted(), "the files are others than were written");
      assert.equal(Deno.statSync(path).mode! & 0o777, 0o777, "not everybody may write to the root");
    }
    for (const [index, name] of names.entries()) {
      const found = this.kind === "block"
        ? await readAt(path, this.#offset(index), pieceBytes)
        : await Deno.readFile(`${path}/${name}`);
      assert.ok(equal(found, this.#data.get(name)!), `${name} is not what was written`);
    }
  }

  /** The size of what is published, in bytes: at least the part of it that a file system leaves. */
  async assertGrown(): Promise<void> {
    const path = this.target;
    const bytes = this.kind === "block"
      ? BigInt(await sh(`blockdev --getsize64 '${path}'`))
      : BigInt(await sh(`echo $(($(stat -f -c '%b*%S' '${path}')))`));
    const all = this.#usableBytes;
    assert.ok(
      bytes >= (this.kind === "block" ? all : all - all / 4n),
      `${this.id} has ${bytes} bytes of ${all}`,
    );
  }

  /** The identity of the file system on the image; "" when there is none. */
  async filesystemId(): Promise<string> {
    return await this.#onPlain((path) => `blkid -p -o value -s UUID '${path}' || :`);
  }

  /** Throws unless the file system of a volume that nobody has is whole. */
  async assertClean(): Promise<void> {
    if (this.#isEncrypted) assert.equal(await this.#label(), headerLabel);
    if (this.kind === "ext4") await this.#onPlain((path) => `e2fsck -f -n '${path}' 2>&1`);
    if (this.kind === "xfs") await this.#onPlain((path) => `xfs_repair -n '${path}' 2>&1`);
  }

  async #label(): Promise<string> {
    return await sh(`blkid -p -o value -s LABEL '${this.image}' || :`);
  }

  /** Runs a script on what a user of a volume that nobody has would see: on the image, or on what it decrypts to. */
  async #onPlain(script: (path: string) => string): Promise<string> {
    if (!this.#isEncrypted) return await sh(script(this.image));
    const name = `${checkedName}-${this.id}`;
    if (await this.#label() !== headerLabel) return "";
    return await sh(
      `export DM_DISABLE_UDEV=1
       device=$(losetup -r -f --show '${this.image}')
       trap 'cryptsetup close ${name}; losetup -d $device' EXIT
       printf %s '${passphrase}' | cryptsetup open --readonly --disable-keyring --key-file=- $device ${name}
       path=$(readlink -f /dev/mapper/${name}); ${script("$path").replaceAll("'$path'", '"$path"')}`,
    );
  }

  /** Everything that there is of it on the node: mounts, connections, files. */
  async traces(): Promise<readonly string[]> {
    const mounts = Deno.readTextFileSync("/proc/self/mountinfo").split("\n").filter((line) =>
      line.includes(this.id)
    );
    const connections = await sh(
      "cat /sys/class/nvme/*/subsysnqn /sys/class/nvme-subsystem/*/subsysnqn 2> /dev/null || :",
    );
    const files = await sh(
      `ls -d ${this.#location.state}/volumes/${this.id}* '${this.staging}'/* '${this.target}' 2> /dev/null || :`,
    );
    const maps = await sh("dmsetup ls");
    return [
      ...mounts.map((line) => `mount: ${line}`),
      ...maps.split("\n").filter((line) => line.startsWith(`rds-csi-${this.id}\t`)),
      ...connections.split("\n").filter((nqn) => nqn.includes(`:${this.id}:`)),
      ...files.split("\n").filter((path) => path !== ""),
    ];
  }

  /** As the kubelet does after the unstage: what it gave the driver has to be empty. */
  removeStaging(): void {
    try {
      Deno.removeSync(this.staging);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  /** Nobody needs it any more. */
  remove(): void {
    this.withdraw();
    Deno.removeSync(this.image);
  }

  /** Where its content is at hand once it is staged. */
  async #stagedAt(): Promise<string> {
    if (this.kind !== "block") return this.staging;
    const { deps } = freshNode(this.#location.state);
    const { map, used: found } = await readChain(deps, this.nqn, callContext());
    if (found === undefined) throw new Error(`${this.id} is not connected`);
    const hasMap = map?.kind === "multipath";
    assert.equal(hasMap, "deviceLayer" in this.#location.parameters, `whether ${this.id} has a map`);
    return found.path;
  }

  /** On a block volume the pieces lie at its beginning, its end, and in between. */
  #offset(index: number): number {
    if (this.kind !== "block") return 0;
    const last = Number(sizes.block.first) - pieceBytes;
    return index === 0 ? 0 : index === 1 ? last : index * 4 * pieceBytes;
  }
}

async function readAt(path: string, offset: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  const file = await Deno.open(path);
  try {
    await file.seek(offset, Deno.SeekMode.Start);
    for (let at = 0; at < length;) {
      const count = await file.read(bytes.subarray(at));
      if (count === null) throw new Error(`${path} ends at ${offset + at}`);
      at += count;
    }
  } finally {
    file.close();
  }
  return bytes;
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

/** Runs a shell script in the guest and answers what it printed; a failure throws. */
export async function sh(script: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("/usr/bin/sh", {
    args: ["-c", script],
    stdin: "null",
  })
    .output();
  const decoder = new TextDecoder();
  if (code === 0) return decoder.decode(stdout).trim();
  throw new Error(`${script}: exit ${code}: ${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}
