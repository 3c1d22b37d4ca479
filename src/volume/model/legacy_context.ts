/** Numbers of a connection that the earlier driver limits less than this one: the most of each, as it is allowed here. */
const most: Readonly<Record<string, number>> = {
  ctrlLossTmo: 86_400,
  reconnectDelay: 3_600,
  keepAliveTmo: 3_600,
};

/**
 * A volume context with what the earlier Go driver has written there in the words of this one; any other as it stands. A
 * volume keeps its context for good, so that none may be refused for a number that this driver's StorageClasses do not take:
 * 0 left a time to the kernel, and is left out; what is larger than is allowed becomes the largest.
 */
export function fromEarlierContext(
  context: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  // It names the export there, and this driver the router's backend.
  if (!Object.hasOwn(context, "nqn") || Object.hasOwn(context, "backend")) return context;
  return Object.fromEntries(
    Object.entries(context).flatMap(([key, value]) => {
      const limit = Object.hasOwn(most, key) ? most[key] : undefined;
      if (limit === undefined || !/^[0-9]+$/.test(value)) return [[key, value]];
      const number = Number(value);
      return number === 0 ? [] : [[key, String(Math.min(number, limit))]];
    }),
  );
}
