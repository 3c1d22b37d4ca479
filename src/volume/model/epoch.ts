/**
 * One period of being published. The counter orders epochs. The nonce makes every NQN unique: even after a record was
 * lost, no NQN returns that a forgotten node still tries to reach.
 */
export interface Epoch {
  readonly counter: number;
  /** Eight lower case hex digits. */
  readonly nonce: string;
}

/** A source of random bytes. */
export interface RandomBytes {
  /** Returns `count` random bytes. */
  bytes(count: number): Uint8Array;
}

const epochForm = /^(0|[1-9][0-9]{0,8})-([0-9a-f]{8})$/;

/**
 * The epoch of a volume that was never published. Its nonce makes every new record different from any earlier one: if
 * the router runs the removal of an earlier volume of the same name late, it finds no match.
 */
export function epochZero(random: RandomBytes): Epoch {
  return { counter: 0, nonce: newNonce(random) };
}

/**
 * The epoch of volumes that the legacy Go driver exports. That driver has no epochs: it exports a volume for as long as
 * the volume exists, under an NQN without an epoch. The epoch ends with the first withdrawal after the volume was
 * migrated. Nodes use this name whoever published the volume, so that migrating it and giving it back changes nothing
 * on them.
 */
export const legacyEpoch: Epoch = { counter: 0, nonce: "00000000" };

/** Whether it is {@linkcode legacyEpoch}. */
export function isLegacyEpoch(epoch: Epoch | undefined): boolean {
  return epoch !== undefined && formatEpoch(epoch) === formatEpoch(legacyEpoch);
}

/** The epoch that follows `last`, or the first one. */
export function nextEpoch(last: Epoch | undefined, random: RandomBytes): Epoch {
  return { counter: (last?.counter ?? 0) + 1, nonce: newNonce(random) };
}

/** A new nonce of eight hex digits. */
export function newNonce(random: RandomBytes): string {
  return random.bytes(4).toHex();
}

/** Formats an epoch as `<counter>-<nonce>`, the form in NQNs, records and publish contexts. */
export function formatEpoch(epoch: Epoch): string {
  return `${epoch.counter}-${epoch.nonce}`;
}

/** Parses an epoch in the form of {@linkcode formatEpoch}; undefined when the text has another form. */
export function parseEpoch(text: string): Epoch | undefined {
  const match = epochForm.exec(text);
  return match ? { counter: Number(match[1]), nonce: match[2]! } : undefined;
}

/** The subsystem NQN under which a volume is exported in one epoch: `<prefix>:<volume id>:<epoch>`. */
export function epochNqn(prefix: string, volumeId: string, epoch: Epoch): string {
  return `${prefix}:${volumeId}:${formatEpoch(epoch)}`;
}
