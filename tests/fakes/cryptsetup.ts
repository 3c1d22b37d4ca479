import { parseHeader } from "../../src/device_mapper/luks_header.ts";
import type { DevicePart } from "../../src/host/kernel_files.ts";
import type { FakeDeviceMapper } from "./device_mapper.ts";
import type { FakeKernelFiles } from "./kernel_files.ts";
import { headOf, ownMetadata, saltOf } from "./luks_header.ts";
import type { FakeDevice } from "./node_device.ts";
import type { RecordedRun, Scripted } from "./processes.ts";

/** What the header takes of a device. */
const headerBytes = 16n << 20n;

/** The encrypted part of a fake device. */
export interface FakeLuks {
  /** The passphrases that open it. */
  keys: string[];
  label: string;
  /** What a mapping on it shows. */
  readonly inner: FakeDevice;
  /** The beginning of the device, and of which keys and label it is. */
  head?: { readonly bytes: Uint8Array; readonly of: string };
  /** What the target answers instead of it; a test may change it from one read to the next. */
  answers?: (head: Uint8Array) => Uint8Array;
}

const wrong = { code: 2, stderr: "No key available with this passphrase." };

/** cryptsetup(8) on the devices of a fake node, and dd(1) for their headers. */
export class FakeCryptsetup {
  /** Flags of the mappings that were opened, by name. */
  readonly flags = new Map<string, readonly string[]>();
  readonly #mapper: FakeDeviceMapper;
  readonly #files: FakeKernelFiles;
  readonly #deviceAt: (path: string) => FakeDevice;
  /** The passphrases by the salts of their keys. */
  readonly #passphrases = new Map<string, string>();
  #minor = 40;

  /** @param deviceAt finds a connected device by its path */
  constructor(mapper: FakeDeviceMapper, files: FakeKernelFiles, deviceAt: (path: string) => FakeDevice) {
    this.#mapper = mapper;
    this.#files = files;
    this.#deviceAt = (path) => deviceAt(path.replace(/^\/proc\/[0-9]+\/fd\/(?=\/)/, ""));
    files.contents = (path, part) => this.#read(path, part);
  }

  /** Runs one command. */
  run({ tool, options: { args, input = "" } }: RecordedRun): Scripted {
    if (tool === "dd") return this.#copy(args);
    const [command, ...rest] = args;
    const [operand = "", name] = rest;
    const header = this.#files.memory.has(operand) ? operand : rest[rest.indexOf("--header") + 1]!;
    switch (command) {
      case "--version":
        return { stdout: "cryptsetup 2.6.1" };
      case "resize":
        return this.#resize(operand);
      case "luksFormat":
        return this.#format(this.#deviceAt(operand), input, rest[rest.indexOf("--label") + 1]!);
      case "open": {
        if (!Object.values(this.#keysOf(header)).includes(input)) return wrong;
        return rest.includes("--test-passphrase") ? 0 : this.#open(name!, this.#deviceAt(operand), rest);
      }
      case "luksAddKey": {
        const at = Number(rest[rest.indexOf("--keyfile-size") + 1]);
        const keys = this.#keysOf(header);
        if (!Object.values(keys).includes(input.slice(0, at))) return wrong;
        const free = [0, 1, 2].find((slot) => !Object.hasOwn(keys, slot))!;
        return this.#change(header, { ...keys, [free]: input.slice(at) });
      }
      case "luksRemoveKey": {
        const keys = Object.entries(this.#keysOf(header));
        if (!keys.some(([, key]) => key === input)) return wrong;
        return this.#change(header, Object.fromEntries(keys.filter(([, key]) => key !== input)));
      }
    }
    return { code: 1, stderr: `Unknown command ${command}` };
  }

  #format(device: FakeDevice, passphrase: string, label: string): Scripted {
    const inner = { ...device, content: "garbage" as const, sizeBytes: device.sizeBytes - headerBytes };
    device.content = "luks";
    device.luks = { keys: [passphrase], label, inner };
    return 0;
  }

  #open(name: string, device: FakeDevice, flags: readonly string[]): Scripted {
    if (this.#mapper.maps.has(name)) return { code: 5, stderr: `Device ${name} already exists.` };
    device.luks!.inner.sizeBytes = device.sizeBytes - headerBytes;
    device.luks!.inner.readOnly = flags.includes("--readonly");
    this.flags.set(name, flags);
    this.#mapper.maps.set(name, {
      minor: this.#minor++,
      uuid: `CRYPT-LUKS2-0123456789abcdef-${name}`,
      table: tableOf(device),
    });
    return 0;
  }

  #resize(name: string): Scripted {
    const map = this.#mapper.maps.get(name);
    if (map?.table === undefined) return { code: 4, stderr: "Device not active" };
    const device = this.#deviceAt(map.table.path);
    device.luks!.inner.sizeBytes = device.sizeBytes - headerBytes;
    map.table = tableOf(device);
    return 0;
  }

  /** The passphrases of a copy of a header, by key slot. */
  #keysOf(path: string): Readonly<Record<string, string>> {
    return this.#parse(this.#files.memory.get(path)!).keys;
  }

  #change(path: string, keys: Readonly<Record<string, string>>): Scripted {
    const { label, seqid } = this.#parse(this.#files.memory.get(path)!);
    this.#files.memory.set(path, this.#headOf(keys, label, seqid + 1n));
    return 0;
  }

  #parse(head: Uint8Array) {
    const { metadata, label, seqid } = parseHeader(head, "a fake device");
    const keys = Object.entries(metadata.keyslots).map(([slot, keyslot]) => {
      const { kdf } = keyslot as unknown as { readonly kdf: { readonly salt: string } };
      return [slot, this.#passphrases.get(kdf.salt)!] as const;
    });
    return { keys: Object.fromEntries(keys), label, seqid };
  }

  #headOf(keys: Readonly<Record<string, string>>, label: string, seqid: bigint): Uint8Array {
    const salts = Object.entries(keys).map(([slot, key]) => {
      this.#passphrases.set(saltOf(key), key);
      return [slot, saltOf(key)];
    });
    return headOf(ownMetadata(Object.fromEntries(salts)), { label, seqid });
  }

  /** What is at the beginning of an encrypted device; a test may have changed its keys and its label. */
  #head(luks: FakeLuks): Uint8Array {
    const of = JSON.stringify([luks.keys, luks.label]);
    if (luks.head?.of !== of) {
      luks.head = { bytes: this.#headOf(Object.fromEntries(luks.keys.entries()), luks.label, 3n), of };
    }
    return luks.head.bytes;
  }

  #read(path: string, { offset, length }: DevicePart): Uint8Array {
    const { content, luks } = this.#deviceAt(path);
    if (content !== "luks" || luks === undefined) return new Uint8Array(length);
    const head = this.#head(luks);
    return (luks.answers?.(head) ?? head).slice(Number(offset), Number(offset) + length);
  }

  /** dd(1) from a copy of a header to its device. */
  #copy(args: readonly string[]): Scripted {
    const { if: from, of, bs, seek } = Object.fromEntries(args.map((arg) => arg.split("=")));
    const luks = this.#deviceAt(of!).luks!;
    const [offset, length] = [Number(seek), Number(bs)];
    const bytes = this.#head(luks).slice();
    bytes.set(this.#files.memory.get(from!)!.subarray(offset, offset + length), offset);
    const { keys, label } = this.#parse(bytes);
    Object.assign(luks, { keys: Object.values(keys), label });
    luks.head = { bytes, of: JSON.stringify([luks.keys, luks.label]) };
    return 0;
  }
}

function tableOf({ deviceNumber, sizeBytes }: FakeDevice) {
  const sectors = String((sizeBytes - headerBytes) / 512n);
  const crypt = `aes-xts-plain64 ${"0".repeat(128)} 0 ${deviceNumber} 32768`;
  return { sectors, path: deviceNumber, queues: false, failed: false, crypt };
}
