import { randomBytes } from "node:crypto";
import { endsWithin } from "../async/waiting.ts";
import { Semaphore, type Turn } from "../async/semaphore.ts";
import { holdingDevice } from "../host/held_device.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes, type RunOptions } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import { VolumeError } from "../volume/errors.ts";
import { isEncryptionUuid } from "../volume/model/device_layer.ts";
import { digest } from "../volume/model/digest.ts";
import { headerBytes, unfinishedLabel } from "../volume/model/encryption.ts";
import type { DeviceMap, DeviceMaps } from "../volume/ports/device_maps.ts";
import type { Encryption, KeyCost, OpenOptions } from "../volume/ports/encryption.ts";
import type { DeviceNode, ProvenDevice } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { isCryptTable } from "./crypt_table.ts";
import { HeaderCopy, type HeaderReading, type HeldPath, writeHeader } from "./header_copy.ts";
import { cipher, hashName, keyBytes } from "./luks_metadata.ts";
import { copyBytes } from "./luks_header.ts";
import { mapDevices, readMap } from "./maps_in_sys.ts";

/** A change of a mapping takes milliseconds; one that takes longer waits for a device that is gone. */
const changeMs = 20_000;
/**
 * Deriving a key takes seconds, also on a slow node: on one that is ten times slower than the one that made the header,
 * with the highest costs of a StorageClass, 100.
 */
const derivingMs = 120_000;
/** All steps of one volume: seconds each, and of one that takes longer the device does not answer. */
const turnMs = 2 * derivingMs;

/** After a refused passphrase, and at most: each try costs a node as much as a guess costs a thief. */
const [firstPauseMs, longestPauseMs] = [10_000, 300_000];

const sectorBytes = 512n;

/** The exit code for a passphrase that opens no key: cryptsetup(8), "RETURN CODES". */
const wrongPassphrase = 2;
/** That for a mapping of that name which another process has made meanwhile. */
const existsAlready = 5;

/** The volume's lock keeps others out, and a container's /run may be read-only. */
const always = ["--batch-mode", "--disable-locks"];
/** The passphrase as it is, to the end of the input. */
const fromInput = "--key-file=-";
/** The kernel's key ring would make a resize ask for the passphrase. */
const withoutKeyring = "--disable-keyring";

/** The turn of steps that share one. */
interface SharedTurn {
  /** Resolves when the last step has ended. */
  readonly over: Promise<void>;
  isTaken: boolean;
}

/** A passphrase that was refused. */
interface Refused {
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** What cryptsetup(8) names a mapping that it makes to read the area of a key. */
const temporaryPrefix = "temporary-cryptsetup-";

/**
 * LUKS2 by cryptsetup(8).
 *
 * Whoever writes to the router's disks chooses what is in a header: how the data is decrypted, and what it costs to derive
 * a key. So a header is read once and compared with what this driver makes, and cryptsetup gets that copy, never the
 * header on the device.
 */
export class Cryptsetup implements Encryption {
  readonly #processes: Processes;
  readonly #files: KernelFiles;
  readonly #maps: Pick<DeviceMaps, "find">;
  readonly #clock: Clock;
  readonly #reading: HeaderReading;
  /** Deriving a key takes much memory. */
  readonly #deriving = new Semaphore(1);
  /** The steps that share a turn, by the context that they pass on. */
  readonly #sharing = new WeakMap<CallContext, SharedTurn>();
  /** By the mapping's name, and the digest of the passphrase. */
  readonly #refused = new Map<string, Map<string, Refused>>();
  /** Digests of refused passphrases are of use in this process only. */
  readonly #salt = randomBytes(16).toString("hex");
  #isThere = false;

  constructor(processes: Processes, files: KernelFiles, maps: Pick<DeviceMaps, "find">, clock: Clock) {
    this.#processes = processes;
    this.#files = files;
    this.#maps = maps;
    this.#clock = clock;
    this.#reading = { files, clock };
  }

  async obstacle(context: CallContext): Promise<string | undefined> {
    if (this.#isThere) return undefined;
    const options = { subject: "crypt", signal: context.signal, timeoutMs: changeMs };
    try {
      await this.#processes.run("cryptsetup", { ...options, args: ["--version"] });
      // The kernel loads the target's module for this command, if it has one.
      const target = await this.#processes.run("dmsetup", { ...options, args: ["target-version", "crypt"] });
      this.#isThere = target.code === 0;
      return this.#isThere ? undefined : `the kernel has no dm-crypt: ${complaint(target)}`;
    } catch (error) {
      if (VolumeError.is(error, "precondition")) return error.message; // A tool is missing.
      throw error;
    }
  }

  async inTurn<T>(context: CallContext, steps: (context: CallContext) => Promise<T>): Promise<T> {
    const own = { ...context };
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#sharing.set(own, { over, isTaken: false });
    try {
      return await steps(own);
    } finally {
      end();
    }
  }

  async format(device: ProvenDevice, passphrase: string, cost: KeyCost, context: CallContext): Promise<void> {
    const args = [
      "--type",
      "luks2",
      "--label",
      unfinishedLabel,
      "--offset",
      String(headerBytes / sectorBytes),
      "--luks2-metadata-size",
      String(copyBytes),
      "--cipher",
      cipher,
      "--key-size",
      String(8 * keyBytes),
      ...costWords(cost),
      fromInput,
    ];
    const result = await this.#holding(
      device,
      context,
      ({ path }) =>
        this.#derive(["luksFormat", path, ...args], {
          subject: device.path,
          input: passphrase,
          mustFinish: true,
        }, context),
    );
    if (result.code !== 0) throw failed("encrypt the device", device.path, result);
  }

  async complete(device: ProvenDevice, context: CallContext): Promise<void> {
    await this.#withHeader(device, context, async (held, copy) => {
      await this.#write(held, copy, context);
    });
  }

  async open(
    name: string,
    device: ProvenDevice,
    passphrase: string,
    { readOnly, allowDiscards }: OpenOptions,
    context: CallContext,
  ): Promise<void> {
    this.#assertNotRefused(name, passphrase);
    if (await this.#maps.find(name) !== undefined) {
      throw new VolumeError(
        "unavailable",
        `Cannot open the encrypted device because it is open already: mapping=${name}`,
      );
    }
    const flags = [...readOnly ? ["--readonly"] : [], ...allowDiscards ? ["--allow-discards"] : []];
    await this.#withHeader(device, context, async ({ path }, copy) => {
      const args = ["open", path, name, "--header", copy.path, "--type", "luks2", withoutKeyring, ...flags];
      let isOthers = false;
      try {
        const subject = `${name} to open`;
        const how = { subject, input: passphrase, turn: this.#turnOf(name) };
        const result = await this.#derive([...args, fromInput], how, context);
        if (result.code === wrongPassphrase) throw this.#refuse(name, passphrase);
        this.#refused.delete(name);
        isOthers = result.code === existsAlready;
        if (result.code !== 0) throw failed("open the encrypted device", device.path, result);
        const mapping = await this.#maps.find(name);
        if (mapping === undefined) throw failed("open the encrypted device", device.path, result);
        await this.assertOwn(mapping, device, context);
      } catch (error) {
        if (!isOthers) await this.#removeRemains(name, device);
        throw error;
      }
    });
  }

  async assertOwn(
    { name, uuid }: DeviceMap,
    below: Pick<DeviceNode, "deviceNumber">,
    context: CallContext,
  ): Promise<void> {
    const shown = await this.#run("dmsetup", ["table", "--uuid", uuid], name, context);
    if (shown.code !== 0) throw failed("read the mapping", name, shown);
    if (isCryptTable(shown.stdout, below.deviceNumber)) return;
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the encrypted volume because its mapping does not encrypt as this driver does: mapping=${name} ` +
        `device=${below.deviceNumber} table=${shown.stdout.trim().slice(0, 200)}; end the pods that use it`,
    );
  }

  async replacePassphrase(
    name: string,
    device: ProvenDevice,
    { current, next }: { readonly current: string; readonly next: string },
    cost: KeyCost,
    context: CallContext,
  ): Promise<void> {
    const both = `${current}\0${next}`;
    this.#assertNotRefused(name, both);
    await this.#withHeader(device, context, async (held, copy) => {
      const turn = this.#turnOf(name);
      const isNew = !await this.#opens(copy, next, context, turn);
      // Before anything is written: a wrong passphrase changes nothing.
      if (isNew && !await this.#opens(copy, current, context, turn)) throw this.#refuse(name, both);
      this.#refused.delete(name);
      if (isNew) await this.#addKey(copy, { current, next }, cost, context);
      const mayHaveCurrent = isNew || Object.keys(copy.header.metadata.keyslots).length > 1;
      const removed = mayHaveCurrent
        ? await this.#onCopy(copy, ["luksRemoveKey", fromInput], current, context)
        : undefined;
      // A key that neither opens stays.
      const isUnchanged = !isNew && (removed?.code ?? wrongPassphrase) === wrongPassphrase;
      if (isUnchanged && copy.header.isInBoth) return;
      if (!isUnchanged && removed?.code !== 0) {
        throw failed("remove the earlier passphrase", device.path, removed!);
      }
      await this.#write(held, copy, context);
    });
  }

  async resize(mapping: DeviceMap, below: ProvenDevice, context: CallContext): Promise<void> {
    await this.#withHeader(below, context, async (_, copy) => {
      const args = ["resize", mapping.name, "--header", copy.path, withoutKeyring, ...always];
      const result = await this.#run("cryptsetup", args, mapping.name, context);
      if (result.code !== 0) throw failed("grow the mapping", mapping.path, result);
    });
  }

  async close(mapping: DeviceMap, deferred: boolean, context: CallContext): Promise<void> {
    const { name, uuid } = mapping;
    if ((await this.#maps.find(name))?.uuid !== uuid) return;
    // Not by cryptsetup, which would read the header on the device, and closes no mapping without a table.
    const args = ["remove", "--uuid", uuid, deferred ? "--deferred" : "--retry"];
    const result = await this.#run("dmsetup", args, name, context);
    if ((await this.#maps.find(name))?.uuid !== uuid) return;
    throw new VolumeError(
      result.code === 0 || /in use|busy/.test(result.stderr) ? "in-use" : "unavailable",
      `Cannot close the encrypted device: mapping=${name}: ${complaint(result)}`,
    );
  }

  /** Adds the next passphrase to a copy. */
  async #addKey(
    copy: HeaderCopy,
    { current, next }: { readonly current: string; readonly next: string },
    cost: KeyCost,
    context: CallContext,
  ): Promise<void> {
    // Both come from the input, one after the other.
    const bytes = new TextEncoder().encode(current).length;
    const args = ["luksAddKey", "-", ...costWords(cost), fromInput, "--keyfile-size", String(bytes)];
    const added = await this.#onCopy(copy, args, current + next, context);
    if (added.code === 0 && await this.#opens(copy, next, context)) return;
    throw failed("add the new passphrase", copy.device, added);
  }

  async #opens(copy: HeaderCopy, passphrase: string, context: CallContext, turn?: Turn): Promise<boolean> {
    const args = ["open", "--type", "luks2", "--test-passphrase", fromInput];
    const result = await this.#onCopy(copy, args, passphrase, context, turn);
    if (result.code === 0) return true;
    if (result.code === wrongPassphrase) return false;
    throw failed("try the passphrase", copy.device, result);
  }

  /** Runs a command on a copy of a header, which becomes its first operand. */
  #onCopy(
    { path, device }: HeaderCopy,
    [command, ...rest]: readonly string[],
    input: string,
    context: CallContext,
    turn?: Turn,
  ): Promise<ToolResult> {
    return this.#derive(
      [command!, path, ...rest],
      { subject: `${device} to ${command}`, input, turn },
      context,
    );
  }

  /** Derives keys. What writes to no device is killed when it takes too long, or the call ends. */
  async #derive(
    args: readonly string[],
    { turn, ...options }: Pick<RunOptions, "subject" | "input" | "mustFinish"> & { turn?: Turn | undefined },
    context: CallContext,
  ): Promise<ToolResult> {
    const shared = this.#sharing.get(context);
    if (shared?.isTaken !== true) await this.#deriving.acquire(context.signal, turn);
    const limits = { signal: context.signal, timeoutMs: derivingMs };
    const derived = this.#processes.run("cryptsetup", { args: [...args, ...always], ...limits, ...options });
    if (shared?.isTaken === true) return await derived;
    if (shared !== undefined) shared.isTaken = true;
    // One that takes longer derives no key any more: it waits for its device, and must not keep other volumes waiting.
    const over = shared?.over ?? derived.then(() => {}, () => {});
    const limitMs = shared === undefined ? derivingMs : turnMs;
    void endsWithin(this.#clock, limitMs, over).then(() => this.#deriving.release());
    return await derived;
  }

  /** Reads the header of a device once, and uses the copy while the device is kept open. */
  async #withHeader(
    device: ProvenDevice,
    context: CallContext,
    use: (held: HeldPath, copy: HeaderCopy) => Promise<void>,
  ): Promise<void> {
    await this.#holding(device, context, async (held) => {
      using copy = await HeaderCopy.read(this.#reading, held, context);
      await use(held, copy);
    });
  }

  /** Writes what was made of a copy to its device. */
  async #write(held: HeldPath, copy: HeaderCopy, context: CallContext): Promise<void> {
    using after = copy.completed();
    await writeHeader(this.#reading, this.#processes, { held, before: copy.header, after }, context);
  }

  /** Removes what an opening has left that did not end well: also a killed one has written nothing to the device. */
  async #removeRemains(name: string, { deviceNumber }: ProvenDevice): Promise<void> {
    const { signal } = new AbortController();
    for (const each of mapDevices(this.#files)) {
      const map = readMap(this.#files, each);
      if (map === undefined) continue;
      const isTemporary = map.name.startsWith(temporaryPrefix) && map.below.includes(deviceNumber);
      if (!isTemporary && (map.name !== name || !isEncryptionUuid(map.uuid))) continue;
      const context = { requestId: name, signal };
      try {
        await this.#run("dmsetup", ["remove", "--uuid", map.uuid, "--retry"], map.name, context);
      } catch (error) {
        // One that stays is found by its name: the next stage closes it, or says that it is in use.
        if (!VolumeError.is(error)) throw error;
      }
    }
  }

  /** Keeps a device open during its use, see {@linkcode holdingDevice}. */
  async #holding<T>(
    device: DeviceNode,
    context: CallContext,
    use: (held: HeldPath) => Promise<T>,
  ): Promise<T> {
    const work = (path: string) => use({ path, device: device.path });
    return await holdingDevice({ files: this.#files, clock: this.#clock }, device, context, work);
  }

  #run(
    tool: "cryptsetup" | "dmsetup",
    args: readonly string[],
    name: string,
    context: CallContext,
  ): Promise<ToolResult> {
    return this.#processes.run(tool, {
      args,
      // A command that hangs on a mapping must not block other commands on it.
      subject: `${name} to ${args[0]}`,
      signal: context.signal,
      timeoutMs: changeMs,
    });
  }

  /** A volume whose passphrase was refused keeps no other one waiting, whatever its Secret holds by now. */
  #turnOf(name: string): Turn {
    return this.#refused.has(name) ? "last" : "first-come";
  }

  #assertNotRefused(name: string, passphrase: string): void {
    const refused = this.#refused.get(name)?.get(this.#digest(passphrase));
    if (refused !== undefined && this.#clock.monotonicMs() < refused.untilMs) throw unauthenticated(name);
  }

  /** Remembers the refusal: an orchestrator repeats a failed call forever. */
  #refuse(name: string, passphrase: string): VolumeError {
    const refused = this.#refused.get(name) ?? new Map<string, Refused>();
    const key = this.#digest(passphrase);
    const before = refused.get(key);
    const pauseMs = before === undefined ? firstPauseMs : Math.min(before.pauseMs * 2, longestPauseMs);
    refused.set(key, { pauseMs, untilMs: this.#clock.monotonicMs() + pauseMs });
    this.#refused.set(name, refused);
    return unauthenticated(name);
  }

  #digest(passphrase: string): string {
    return digest(this.#salt + passphrase, 32);
  }
}

function costWords({ memoryMiB = 128, timeMs = 2_000 }: KeyCost): readonly string[] {
  const memory = String(memoryMiB * 1024);
  const derivation = ["--pbkdf", "argon2id", "--pbkdf-memory", memory, "--iter-time", String(timeMs)];
  return ["--hash", hashName, ...derivation];
}

function unauthenticated(name: string): VolumeError {
  return new VolumeError(
    "unauthenticated",
    `Cannot open the encrypted volume because the passphrase opens none of its keys: mapping=${name}; ` +
      "the same passphrase is not tried again for a while, another one at once",
  );
}

function failed(what: string, device: string, result: ToolResult): VolumeError {
  return new VolumeError("unavailable", `Cannot ${what}: device=${device}: ${complaint(result)}`);
}
