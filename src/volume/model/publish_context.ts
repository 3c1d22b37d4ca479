/** A publish or volume context as the orchestrator keeps it and passes it on. */
export type ContextValues = Readonly<Record<string, string>>;

/** What ControllerPublishVolume passes to the node. */
export interface PublishContext {
  readonly nqn: string;
  readonly epoch: string;
  /** Addresses of the router where the volume can be reached; never empty. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** The volume's least size; 0 where the legacy driver published it, which passes no size. */
  readonly sizeBytes: bigint;
  readonly readOnly: boolean;
  readonly mayFormat: boolean;
  /** Whether the volume was, or may have been, a person's disk with whatever was on it. */
  readonly imported: boolean;
  /**
   * The claim whose owner may allow a format in the next epoch; undefined when it is unknown, or formatting cannot be
   * allowed.
   */
  readonly claim: ClaimName | undefined;
  /** Whether the log may be replayed although the volume is only read here. */
  readonly mayReplay: boolean;
  /** The machine that the volume was published to, see `machineHash()`; undefined where that is not known. */
  readonly machine: string | undefined;
  /** The controller may turn the export off and on, because it relies on a device layer below the volume. */
  readonly needsLayer: boolean;
  /** Whether the volume is recorded as encrypted. */
  readonly encrypted: boolean;
}

/** A claim, as its owner names it. */
export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Formats the publish context of a volume, with the keys of the legacy Go driver beside this driver's, for its nodes.
 *
 * @param fsType the file system; "" for a block volume
 */
export function formatPublishContext(
  context: PublishContext,
  fsType: string,
): Record<string, string> {
  const { nqn, addresses, claim, machine } = context;
  const port = String(context.port);
  return {
    nvmeAddress: addresses.join(","),
    nvmePort: port,
    nqn,
    epoch: context.epoch,
    size: String(context.sizeBytes),
    readonly: String(context.readOnly),
    mayFormat: String(context.mayFormat),
    imported: String(context.imported),
    ...(claim === undefined ? {} : { claim: `${claim.namespace}/${claim.name}` }),
    ...(context.mayReplay ? { mayReplay: "true" } : {}),
    ...(machine === undefined ? {} : { machine }),
    ...(context.needsLayer ? { layer: "true" } : {}),
    ...(context.encrypted ? { encrypted: "true" } : {}),
    // A node of the legacy driver knows no layer, and would format what is encrypted: without this key it fails.
    ...(context.needsLayer || context.encrypted ? {} : { nvme_nqn: nqn }),
    nvme_address: addresses[0]!,
    nvme_port: port,
    fs_type: fsType,
  };
}
