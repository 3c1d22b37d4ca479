/** ext4's superblock and its fields in it (Documentation/filesystems/ext4/super.rst): `s_mtime`, `s_mnt_count`. */
const superblockAt = 1024;
const mountTimeAt = superblockAt + 0x2c;
const mountCountAt = superblockAt + 0x34;

/**
 * Whether an ext4 was ever mounted for writing. mkfs leaves both fields zero; a check sets only the count back.
 *
 * @param start the first bytes of the device, up to the end of the superblock
 */
export function wasMounted(start: Uint8Array): boolean {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  return view.getUint32(mountTimeAt, true) !== 0 || view.getUint16(mountCountAt, true) !== 0;
}
