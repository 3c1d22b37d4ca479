import { randomBytes } from "node:crypto";
import { endsWithin, limitSignal } from "../async/deadline.ts";
import { Semaphore } from "../async/semaphore.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import { VolumeError } from "../volume/errors.ts";
import { digest } from "../volume/model/digest.ts";
import { headerBytes, headerLabel, unfinishedLabel } from "../volume/model/encryption.ts";
import type { DeviceMap, DeviceMaps } from "../volume/ports/device_maps.ts";
import type { Encryption, KeyCost, OpenOptions } from "../volume/ports/encryption.ts";
import type { DeviceNode, ProvenDevice } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";

/** A change of a mapping takes milliseconds; one that takes longer waits for a device that is gone. */
const changeMs = 20_000;
/** Deriving a key takes seconds, also on a slow node. */
const derivingMs = 120_000;
/** An open that takes longer waits for a device that does not answer. */
const openMs = 10_000;
/** The close of a device that does not answer goes on in the background. */
const closeMs = 2_000;

/** After a refused passphrase, and at most: each try costs a node as much as a guess costs a thief. */
const [firstPauseMs, longestPauseMs] = [10_000, 300_000];

const sectorBytes = 512n;

/** The exit code for a passphrase that opens no key: cryptsetup(8), "RETURN CODES". */
const wrongPassphrase = 2;

/** The volume's lock keeps others out, and a container's /run may be read-only. */
const always = ["--batch-mode", "--disable-locks"];
/** The passphrase as it is, to the end of the input. */
const fromInput = "--key-file=-";
/** The kernel's key ring would make a resize ask for the passphrase. */
const withoutKeyring = "--disable-keyring";

/** A passphrase that was refused. */
interface Refused {
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** LUKS2 by cryptsetup(8). */
export class Cryptsetup implements Encryption {
  readonly #processes: Processes;
  readonly #files: KernelFiles;
  readonly #maps: Pick<DeviceMaps, "find">;
  readonly #clock: Clock;
  /** Deriving a key takes much memory. */
  readonly #deriving = new Semaphore(1);
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

  async format(device: ProvenDevice, passphrase: string, cost: KeyCost, context: CallContext): Promise<void> {
    const args = [
      "luksFormat",
      "--type",
      "luks2",
      "--label",
      unfinishedLabel,
      "--offset",
      String(headerBytes / sectorBytes),
      ...costWords(cost),
      fromInput,
    ];
    const result = await this.#derive(device, args, passphrase, context);
    if (result.code !== 0) throw failed("encrypt the device", device.path, result);
  }

  async complete(device: ProvenDevice, context: CallContext): Promise<void> {
    const result = await this.#derive(device, ["config", "--label", headerLabel], undefined, context);
    if (result.code !== 0) throw failed("label the header", device.path, result);
  }

  async open(
    name: string,
    device: ProvenDevice,
    passphrase: string,
    { readOnly, allowDiscards }: OpenOptions,
    context: CallContext,
  ): Promise<void> {
    this.#assertNotRefused(name, passphrase);
    const flags = [...readOnly ? ["--readonly"] : [], ...allowDiscards ? ["--allow-discards"] : []];
    const args = ["open", name, "--type", "luks2", withoutKeyring, ...flags, fromInput];
    const result = await this.#derive(device, args, passphrase, context);
    if (result.code === wrongPassphrase) throw this.#refuse(name, passphrase);
    this.#refused.delete(name);
    if (result.code !== 0) throw failed("open the encrypted device", device.path, result);
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
    if (!await this.#opens(device, next, context)) {
      // Before anything is written: a wrong passphrase changes nothing.
      if (!await this.#opens(device, current, context)) throw this.#refuse(name, both);
      // Without its locks cryptsetup repairs no copy of the header, but each write takes the label from a good one. After a
      // label that was written by half, that is the label before.
      await this.complete(device, context);
      // Both come from the input, one after the other.
      const bytes = new TextEncoder().encode(current).length;
      const args = ["luksAddKey", "-", ...costWords(cost), fromInput, "--keyfile-size", String(bytes)];
      const added = await this.#derive(device, args, current + next, context);
      if (added.code !== 0) throw failed("add the new passphrase", device.path, added);
      if (!await this.#opens(device, next, context)) {
        throw failed("add the new passphrase", device.path, added);
      }
    }
    this.#refused.delete(name);
    if (await this.#keyCount(device, context) === 1) return;
    const removed = await this.#derive(device, ["luksRemoveKey", fromInput], current, context);
    if (removed.code === 0 || removed.code === wrongPassphrase) return;
    throw failed("remove the earlier passphrase", device.path, removed);
  }

  async resize(mapping: DeviceMap, context: CallContext): Promise<void> {
    const result = await this.#run(["resize", mapping.name, withoutKeyring], mapping.name, context);
    if (result.code !== 0) throw failed("grow the mapping", mapping.path, result);
  }

  async close(mapping: DeviceMap, deferred: boolean, context: CallContext): Promise<void> {
    const { name, uuid } = mapping;
    if ((await this.#maps.find(name))?.uuid !== uuid) return;
    const args = ["close", name, ...deferred ? ["--deferred"] : []];
    const result = await this.#run(args, name, context);
    if ((await this.#maps.find(name))?.uuid !== uuid) return;
    throw new VolumeError(
      result.code === 0 || /in use|busy/.test(result.stderr) ? "in-use" : "unavailable",
      `Cannot close the encrypted device: mapping=${name}: ${complaint(result)}`,
    );
  }

  async #opens(device: ProvenDevice, passphrase: string, context: CallContext): Promise<boolean> {
    const args = ["open", "--type", "luks2", "--test-passphrase", fromInput];
    const result = await this.#derive(device, args, passphrase, context);
    if (result.code === 0) return true;
    if (result.code === wrongPassphrase) return false;
    throw failed("try the passphrase", device.path, result);
  }

  async #keyCount(device: ProvenDevice, context: CallContext): Promise<number> {
    const args = ["luksDump", "--dump-json-metadata"];
    const result = await this.#derive(device, args, undefined, context);
    if (result.code !== 0) throw failed("read the header", device.path, result);
    const { keyslots } = JSON.parse(result.stdout) as {
      readonly keyslots: Readonly<Record<string, unknown>>;
    };
    return Object.keys(keyslots).length;
  }

  /** Runs a command on a device, which becomes its first operand. */
  async #derive(
    device: ProvenDevice,
    [command, ...rest]: readonly string[],
    input: string | undefined,
    context: CallContext,
  ): Promise<ToolResult> {
    await this.#deriving.acquire(context, this.#clock);
    const derived = this.#holding(device, context, (path) =>
      this.#processes.run("cryptsetup", {
        args: [command!, path, ...rest, ...always],
        signal: context.signal,
        subject: device.path,
        mustFinish: true,
        ...(input === undefined ? {} : { input }),
      }));
    // One that takes longer derives no key any more: it waits for its device, and must not keep other volumes waiting.
    const over = derived.then(() => {}, () => {});
    void endsWithin(this.#clock, derivingMs, over).then(() => this.#deriving.release());
    return await derived;
  }

  /**
   * Keeps a device open during its use, and names it by this process's descriptor. cryptsetup opens a device several
   * times: after this process was killed, its name could be another volume's, the descriptor is gone.
   */
  async #holding<T>(
    device: ProvenDevice,
    context: CallContext,
    use: (path: string) => Promise<T>,
  ): Promise<T> {
    const held = await this.#hold(device, context);
    try {
      return await use(held.path);
    } finally {
      await endsWithin(this.#clock, closeMs, held.release());
    }
  }

  async #hold(
    device: DeviceNode,
    context: CallContext,
  ): Promise<{ readonly path: string; release(): Promise<void> }> {
    using limited = limitSignal(this.#clock, context.signal, openMs);
    const held = await this.#files.hold(device.path, limited.signal);
    context.signal.throwIfAborted();
    if (held?.deviceNumber === device.deviceNumber) return held;
    await held?.release();
    throw new VolumeError("unavailable", `Cannot open the device: device=${device.path}`);
  }

  #run(args: readonly string[], name: string, context: CallContext): Promise<ToolResult> {
    return this.#processes.run("cryptsetup", {
      args: [...args, ...always],
      // A command that hangs on a mapping must not block other commands on it.
      subject: `${name} to ${args[0]}`,
      signal: context.signal,
      timeoutMs: changeMs,
    });
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
  return ["--pbkdf", "argon2id", "--pbkdf-memory", memory, "--iter-time", String(timeMs)];
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
