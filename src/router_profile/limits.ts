/** The longest command that the driver sends, in bytes: a router has to accept it. */
export const minCommand = 1024;
/** The minimum output of a router at a time, in bytes: less has no room for one disk and the pools. */
export const minPut = 2048;

/**
 * What a router has to take and give whole, without which this driver cannot work with it.
 *
 * A comment is as long as a record may be: a router cuts off a longer one silently, and a record that was cut is a
 * damaged one.
 */
export const neededLimits = {
  /** Length of a slot: volume ids are that long. */
  slotCharacters: 32,
  commentBytes: 255,
  /** Length of the NQN of an epoch under the default prefix. */
  nqnBytes: 76,
  putBytes: minPut,
  commandBytes: minCommand,
} as const;

/** {@linkcode neededLimits} in words. */
export function describeNeeds(nqnBytes: number): string {
  const { slotCharacters, commentBytes, putBytes, commandBytes } = neededLimits;
  return `slots of ${slotCharacters} characters, comments of ${commentBytes} bytes, NQNs of ${nqnBytes}, answers of ` +
    `${putBytes} and commands of ${commandBytes}`;
}
