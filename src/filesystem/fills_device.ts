import type { FilesystemType } from "../volume/model/capabilities.ts";

/** Whole blocks of any device, enough for the superblock of either file system. */
export const superblockBytes = 4096;

/** ext4's superblock and its fields in it (Documentation/filesystems/ext4/super.rst). */
const ext4 = {
  at: 1024,
  blocksLowAt: 0x4,
  logBlockSizeAt: 0x18,
  magicAt: 0x38,
  magic: 0xef53,
  incompatibleFeaturesAt: 0x60,
  has64Bit: 0x80,
  blocksHighAt: 0x150,
} as const;

/** xfs's superblock (XFS Algorithms & Data Structures, "Superblocks"); "XFSB". */
const xfs = { magic: 0x58465342, blockSizeAt: 4, blocksAt: 8 } as const;

/**
 * Whether a file system's superblock covers all whole blocks of its device; false where that is unknown. A mounted file
 * system may have grown since its superblock was written, and never shrinks.
 *
 * @param start the first {@linkcode superblockBytes} of the device
 */
export function fillsDevice(start: Uint8Array, filesystem: FilesystemType, deviceBytes: bigint): boolean {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  const size = filesystem === "ext4" ? ext4Size(view) : xfsSize(view);
  return size !== undefined && size.blocks === deviceBytes / size.blockBytes;
}

/** Undefined when there is no superblock. */
type Size = { readonly blocks: bigint; readonly blockBytes: bigint } | undefined;

function ext4Size(view: DataView): Size {
  const { at } = ext4;
  if (view.getUint16(at + ext4.magicAt, true) !== ext4.magic) return undefined;
  const hasHigh = (view.getUint32(at + ext4.incompatibleFeaturesAt, true) & ext4.has64Bit) !== 0;
  const high = hasHigh ? view.getUint32(at + ext4.blocksHighAt, true) : 0;
  return {
    blocks: BigInt(high) << 32n | BigInt(view.getUint32(at + ext4.blocksLowAt, true)),
    blockBytes: 1024n << BigInt(view.getUint32(at + ext4.logBlockSizeAt, true)),
  };
}

function xfsSize(view: DataView): Size {
  const blockBytes = BigInt(view.getUint32(xfs.blockSizeAt));
  if (view.getUint32(0) !== xfs.magic || blockBytes === 0n) return undefined;
  return { blocks: view.getBigUint64(xfs.blocksAt), blockBytes };
}
