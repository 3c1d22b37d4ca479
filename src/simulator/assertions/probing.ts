const scratchName = /rds-csi-probe-[0-9a-f]{8}/;

/** Whether a command deals with what a probe made, which tries limits on purpose. */
export function mentionsScratch(command: string): boolean {
  return scratchName.test(command);
}

/** Whether a slot, or the last part of a path, is the name of something that a probe made. */
export function isScratchName(name: string): boolean {
  return name.search(scratchName) === 0;
}
