import type { DeviceMap } from "./device_maps.ts";
import type { DeviceNode, ProvenDevice } from "./node_ports.ts";
import type { CallContext } from "./system.ts";

/** What a guess of the passphrase costs. */
export interface KeyCost {
  /** @default {128} */
  readonly memoryMiB?: number | undefined;
  /** @default {2000} */
  readonly timeMs?: number | undefined;
}

/** How an encrypted device is opened. */
export interface OpenOptions {
  /** The kernel then refuses every write to the mapping, and the device is opened for reading. */
  readonly readOnly: boolean;
  /** Whether trims reach the device. */
  readonly allowDiscards: boolean;
}

/**
 * Encrypted devices: LUKS2 headers, and the mappings through which they are read and written. A mapping is found and
 * listed like any other map, see `DeviceMaps.find()`; it takes the whole of its device behind the header.
 *
 * A header is believed only where it is one that this driver makes: every method that reads one throws `precondition`,
 * naming the field that differs. What writes to a device is not killed when the context ends; what derives a key without
 * that is, at the latest after two minutes. One volume's keys are derived at a time. A passphrase never appears in an error.
 */
export interface Encryption {
  /** Why this node can open no encrypted device, for people; undefined when it can. */
  obstacle(context: CallContext): Promise<string | undefined>;
  /**
   * Runs all steps that derive keys for one volume in one turn. Steps that each wait for a turn of their own would never
   * end on a node with many volumes: before each second step would come the first ones of all others.
   *
   * The turn begins with the first key that is derived. A volume whose passphrase was refused goes after all others.
   *
   * @param steps pass on the context that they get
   *
   * Throws whatever the steps throw.
   */
  inTurn<T>(context: CallContext, steps: (context: CallContext) => Promise<T>): Promise<T>;
  /**
   * Writes a new header, with one key for the passphrase and the label of an unfinished one. Erases what the header covers, and nothing else. Throws
   * `unavailable` when it does not end well, also when anything has the device mounted or mapped.
   */
  format(device: ProvenDevice, passphrase: string, cost: KeyCost, context: CallContext): Promise<void>;
  /** Gives the header the label of a complete one: from then on there may be data behind it. */
  complete(device: ProvenDevice, context: CallContext): Promise<void>;
  /**
   * Makes the mapping of that name on the device.
   *
   * Throws `unauthenticated` when the passphrase opens no key; the same passphrase is then not tried again for a while.
   * Throws `unavailable` when the mapping cannot be made, for example because there is one of that name. Whatever it throws,
   * it leaves no mapping that can be removed.
   */
  open(
    name: string,
    device: ProvenDevice,
    passphrase: string,
    options: OpenOptions,
    context: CallContext,
  ): Promise<void>;
  /**
   * Asserts that a mapping, whoever made it, encrypts all that it shows of the device as this driver does. Throws
   * `identity-mismatch` when it does not, `unavailable` when that cannot be read.
   */
  assertOwn(mapping: DeviceMap, below: Pick<DeviceNode, "deviceNumber">, context: CallContext): Promise<void>;
  /**
   * Makes the next passphrase the only one besides those that neither opens, of a header that is complete. Repeated after
   * any interruption, it comes to the same. One of the two opens the device at any time.
   *
   * @param name of the mapping that is to be made; for the memory of refused passphrases
   *
   * Throws `unauthenticated` when neither opens it.
   */
  replacePassphrase(
    name: string,
    device: ProvenDevice,
    passphrases: { readonly current: string; readonly next: string },
    cost: KeyCost,
    context: CallContext,
  ): Promise<void>;
  /** Makes the mapping as large as the device below it allows. Needs no passphrase. */
  resize(mapping: DeviceMap, below: ProvenDevice, context: CallContext): Promise<void>;
  /**
   * Removes the mapping; returns when the kernel shows it no more. OK when it is gone. Throws `in-use` while it is mounted
   * or open.
   *
   * @param deferred lets the kernel remove it as soon as it is closed, where it is open now
   */
  close(mapping: DeviceMap, deferred: boolean, context: CallContext): Promise<void>;
}
