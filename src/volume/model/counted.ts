/** A number and its noun: `1 volume`, `5,000 volumes`. */
export function counted(amount: number, noun: string): string {
  return `${amount.toLocaleString("en-US")} ${noun}${amount === 1 ? "" : "s"}`;
}
