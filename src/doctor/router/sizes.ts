const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size for people: `6.6 TiB`. */
export function formatBytes(bytes: bigint): string {
  let value = Number(bytes);
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
