import { earlierEpoch, formatEpoch } from "../../volume/model/epoch.ts";

type Values = Readonly<Record<string, string>>;

/** The keys of this driver's own publish context that the earlier Go driver's has not. */
const ownKeys = ["epoch", "size", "nqn"];

/**
 * The publish context of the earlier Go driver's controller in the words of this one; any other as it stands. That driver
 * knows neither epochs nor sizes: its export has the name of {@linkcode earlierEpoch}, and a size is not claimed. How it
 * decides what is blank is not known here, so that its volumes are never formatted.
 *
 * @param volume the volume context, in which it repeats what it knows of the volume
 */
export function inOwnWords(publish: Values, volume: Values): Values {
  if (ownKeys.some((key) => Object.hasOwn(publish, key))) return publish;
  const nqn = publish["nvme_nqn"] || volume["nqn"];
  if (!nqn) return publish;
  return {
    nqn,
    epoch: formatEpoch(earlierEpoch),
    nvmeAddress: publish["nvme_address"] || volume["nvmeAddress"] || "",
    nvmePort: publish["nvme_port"] || volume["nvmePort"] || "",
    size: "0",
    readonly: "false",
    mayFormat: "false",
  };
}

/** The file system of a capability that names none: of this driver by the volume, of the earlier one by the publish context. */
export function filesystemNamed(publish: Values, volume: Values): string {
  return volume["fsType"] || publish["fs_type"] || "";
}
