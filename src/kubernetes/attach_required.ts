import { VolumeError } from "../volume/errors.ts";
import { ApiError, type KubernetesApi } from "./api.ts";

interface RawDriver {
  readonly spec?: { readonly attachRequired?: boolean };
}

/**
 * Refuses to take the absence of a VolumeAttachment for the absence of a user. The first versions of the earlier driver came
 * with a CSIDriver object that has none made; without such an object they are made.
 *
 * @throws {VolumeError} precondition when there are none by this driver's CSIDriver object
 * @throws {ApiError} when that cannot be read
 */
export async function assertAttachRequired(
  api: KubernetesApi,
  driverName: string,
  signal: AbortSignal,
): Promise<void> {
  let driver: RawDriver;
  try {
    driver = await api.request({
      method: "GET",
      path: `/apis/storage.k8s.io/v1/csidrivers/${driverName}`,
      signal,
    });
  } catch (error) {
    if (ApiError.is(error, 404)) return;
    throw error;
  }
  if (driver.spec?.attachRequired !== false) return;
  throw new VolumeError(
    "precondition",
    `Cannot tell who has a volume as the CSIDriver object says attachRequired: false: csidriver=${driverName}; no ` +
      "VolumeAttachment is made then: end the pods that use volumes, and put this driver's object in its place",
  );
}
