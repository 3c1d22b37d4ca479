/**
 * One period of being published. The counter orders epochs; the nonce makes sure that not even a lost record brings
 * an NQN back that a forgotten node still knocks at.
 */
export interface Epoch {
  readonly counter: number;
  /** Eight lower case hex digits. */
  readonly nonce: string;
}

/** Chance, as far as an epoch needs it. */
export interface RandomBytes {
  /** `count` bytes. */
  bytes(count: number): Uint8Array;
}

const epochForm = /^(0|[1-9][0-9]{0,8})-([0-9a-f]{8})$/;

/**
 * What stands for the epoch of a volume that was never published. Its nonce makes every new record unlike any before
 * it: a removal of an earlier volume of the same name that the router runs late finds nothing.
 */
export function epochZero(random: RandomBytes): Epoch {
  return { counter: 0, nonce: newNonce(random) };
}

/**
 * The period in which the legacy Go driver, which has none, exports a volume: for as long as it is there, under an NQN
 * without an epoch. It ends with the first withdrawal after the volume was taken over. Nodes know it by this name whoever
 * published the volume, so that taking it over and giving it back leaves them what they have.
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

/** Eight hex digits that were not there before. */
export function newNonce(random: RandomBytes): string {
  return random.bytes(4).toHex();
}

/** `<counter>-<nonce>`, as it stands in NQNs, records and publish contexts. */
export function formatEpoch(epoch: Epoch): string {
  return `${epoch.counter}-${epoch.nonce}`;
}

/** Reads what {@linkcode formatEpoch} wrote; undefined when it is anything else. */
export function parseEpoch(text: string): Epoch | undefined {
  const match = epochForm.exec(text);
  return match ? { counter: Number(match[1]), nonce: match[2]! } : undefined;
}

/** The subsystem NQN under which a volume is exported in one epoch: `<prefix>:<volume id>:<epoch>`. */
export function epochNqn(prefix: string, volumeId: string, epoch: Epoch): string {
  return `${prefix}:${volumeId}:${formatEpoch(epoch)}`;
}
