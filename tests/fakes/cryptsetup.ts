import type { FakeDevice } from "./node_device.ts";
import type { FakeDeviceMapper } from "./device_mapper.ts";
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
}

/** cryptsetup(8) on the devices of a fake node. */
export class FakeCryptsetup {
  /** Whether the kernel has dm-crypt. */
  hasCrypt = true;
  /** Flags of the open mappings, by name. */
  readonly flags = new Map<string, readonly string[]>();
  /** Mappings that are to go as soon as they are closed. */
  readonly deferred = new Set<string>();
  readonly #mapper: FakeDeviceMapper;
  readonly #deviceAt: (path: string) => FakeDevice;
  #minor = 40;

  /** @param deviceAt finds a connected device by its path */
  constructor(mapper: FakeDeviceMapper, deviceAt: (path: string) => FakeDevice) {
    this.#mapper = mapper;
    this.#deviceAt = deviceAt;
  }

  /** Runs one command. */
  run({ options: { args, input = "" } }: RecordedRun): Scripted {
    const [command, ...rest] = args;
    const [operand = "", name] = rest;
    switch (command) {
      case "--version":
        return { stdout: "cryptsetup 2.6.1" };
      case "resize":
        return this.#resize(operand);
      case "close":
        return this.#close(operand, rest.includes("--deferred"));
    }
    const device = this.#deviceAt(operand.replace(/^\/proc\/[0-9]+\/fd\//, ""));
    return this.#onDevice(command!, device, rest, name, input);
  }

  #onDevice(
    command: string,
    device: FakeDevice,
    rest: readonly string[],
    name: string | undefined,
    input: string,
  ): Scripted {
    if (command === "luksFormat") {
      const inner = { ...device, content: "garbage" as const, sizeBytes: device.sizeBytes - headerBytes };
      device.content = "luks";
      device.luks = { keys: [input], label: rest[rest.indexOf("--label") + 1]!, inner };
      return 0;
    }
    const { luks } = device;
    if (device.content !== "luks" || luks === undefined) {
      return { code: 1, stderr: "Device is not a valid LUKS device." };
    }
    const wrong = { code: 2, stderr: "No key available with this passphrase." };
    switch (command) {
      case "open":
        if (!luks.keys.includes(input)) return wrong;
        return rest.includes("--test-passphrase") ? 0 : this.#open(name!, device, rest);
      case "luksAddKey": {
        const at = Number(rest[rest.indexOf("--keyfile-size") + 1]);
        if (!luks.keys.includes(input.slice(0, at))) return wrong;
        luks.keys.push(input.slice(at));
        return 0;
      }
      case "luksRemoveKey":
        if (!luks.keys.includes(input)) return wrong;
        luks.keys = luks.keys.filter((key) => key !== input);
        return 0;
      case "config":
        luks.label = rest[rest.indexOf("--label") + 1]!;
        return 0;
      case "luksDump":
        return { stdout: JSON.stringify({ keyslots: { ...luks.keys } }) };
    }
    return { code: 1, stderr: `Unknown command ${command}` };
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

  #close(name: string, deferred: boolean): Scripted {
    if (this.#mapper.open.has(name)) {
      if (deferred) this.deferred.add(name);
      return deferred ? 0 : { code: 5, stderr: `Device ${name} is still in use.` };
    }
    this.#mapper.maps.delete(name);
    this.flags.delete(name);
    return 0;
  }

  /** The kernel removes what was to be removed and is closed by now. */
  removeDeferred(): void {
    for (const name of this.deferred) {
      if (this.#mapper.open.has(name)) continue;
      this.#mapper.maps.delete(name);
      this.deferred.delete(name);
    }
  }
}

function tableOf({ deviceNumber, sizeBytes }: FakeDevice) {
  const sectors = String((sizeBytes - headerBytes) / 512n);
  return { sectors, path: deviceNumber, queues: false, failed: false };
}
