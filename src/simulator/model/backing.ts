/** A file found in a backing folder at start. */
export interface FoundFile {
  /** Without leading slash. */
  readonly path: string;
  readonly directory: boolean;
  readonly sizeBytes: bigint;
}

/** Where the bytes of the router's files are. Paths are those of the router, without leading slash. */
export interface Backing {
  makeDirectory(path: string): void;
  /** Makes a file of that size that holds nothing. */
  create(path: string, sizeBytes: bigint): void;
  resize(path: string, sizeBytes: bigint): void;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string): void;
  rename(from: string, to: string): void;
  copy(from: string, to: string): void;
  /** How much of a file takes space. */
  allocatedBytes(path: string): bigint;
  /** Says that so much of a file was written, where nothing really is. */
  pretendWritten?(path: string, bytes: bigint): void;
  /** Where the file is on this machine; undefined when it is nowhere. */
  locate(path: string): string | undefined;
  /** What was there before the simulator was. */
  scan(): readonly FoundFile[];
}
