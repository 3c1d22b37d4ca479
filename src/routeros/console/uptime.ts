const clockForm = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d{1,2}):(\d{2}):(\d{2})(?:\.\d+)?)?$/;
const letterForm = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)(?:\.\d+)?s)?(?:\d+ms)?$/;
const daySeconds = 86_400;

/**
 * Milliseconds of a RouterOS duration such as `2w1d03:04:05`, `3d04:05:06`, `00:01:02` or `1w2d3h4m5s`, whole seconds
 * only; undefined when it has another form. A year counts 365 days.
 */
export function parseUptime(text: string): number | undefined {
  const match = text === "" ? null : clockForm.exec(text) ?? letterForm.exec(text);
  if (match === null) return undefined;
  const [years, weeks, days, hours, minutes, seconds] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const wholeDays = years! * 365 + weeks! * 7 + days!;
  return (wholeDays * daySeconds + hours! * 3600 + minutes! * 60 + seconds!) * 1000;
}
