import { messageOf } from "../volume/error_messages.ts";
import { Semaphore } from "../async/semaphore.ts";
import { type ApiCall, ApiError, type KubernetesApi } from "./api.ts";

/**
 * An API server that gets only a few requests at once; the others wait, and their time limits begin after the wait.
 * Work that nobody waits for uses it, so that it leaves connections to calls.
 */
export class LimitedApi implements KubernetesApi {
  readonly #api: KubernetesApi;
  readonly #atOnce: Semaphore;

  constructor(api: KubernetesApi, maxAtOnce: number) {
    this.#api = api;
    this.#atOnce = new Semaphore(maxAtOnce);
  }

  async request<T>(call: ApiCall): Promise<T> {
    await this.#turn(call);
    try {
      return await this.#api.request<T>(call);
    } finally {
      this.#atOnce.release();
    }
  }

  async #turn({ method, path, signal = new AbortController().signal }: ApiCall): Promise<void> {
    try {
      await this.#atOnce.acquire(signal);
    } catch (cause) {
      const reason = messageOf(cause);
      throw new ApiError(0, `Cannot reach the API server because ${reason}: ${method} ${path}`, { cause });
    }
  }
}
