import { Client, credentials } from "@grpc/grpc-js";
import { ServiceClient } from "../../src/csi/server/client.ts";
import type { PluginInfo } from "../../src/csi/generated/pluginregistration.ts";
import { loadRegistration } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";

/** How long a plugin may take to answer. */
const answerLimitMs = 10_000;

/**
 * A kubelet as plugins see one: it asks every socket in its folder who is there, once for each that appears, and tells
 * it what became of that. Names that begin with a dot are not looked at.
 */
export class FakeKubelet {
  readonly folder: string;
  /** Why no plugin can be registered now; undefined when they can. */
  refusal: string | undefined;
  readonly #known = new Map<string, string>();
  readonly #definition = loadRegistration().Registration.service;

  /** @param kubeletPath holds the folder plugins_registry, which is made when it is missing */
  constructor(kubeletPath: string) {
    this.folder = `${kubeletPath}/plugins_registry`;
    Deno.mkdirSync(this.folder, { recursive: true });
  }

  /** One look at the folder: who was there for the first time. */
  async check(): Promise<readonly PluginInfo[]> {
    const found = this.#sockets();
    for (const name of [...this.#known.keys()]) if (!found.has(name)) this.#known.delete(name);
    const appeared: PluginInfo[] = [];
    for (const [name, identity] of found) {
      if (this.#known.get(name) === identity) continue;
      this.#known.set(name, identity);
      appeared.push(await this.#ask(name));
    }
    return appeared;
  }

  /** The process ends and another one comes, which knows nobody. */
  restart(): void {
    this.#known.clear();
  }

  #sockets(): Map<string, string> {
    const found = new Map<string, string>();
    for (const { name } of Deno.readDirSync(this.folder)) {
      const { isSocket, ino, mtime } = Deno.lstatSync(`${this.folder}/${name}`);
      if (isSocket && !name.startsWith(".")) found.set(name, `${ino} ${mtime?.getTime()}`);
    }
    return found;
  }

  async #ask(name: string): Promise<PluginInfo> {
    const client = new Client(`unix:${this.folder}/${name}`, credentials.createInsecure());
    try {
      const service = new ServiceClient(client, this.#definition, systemClock);
      const info = await service.call("GetInfo", {}, answerLimitMs);
      const error = this.refusal ?? "";
      const status = { pluginRegistered: error === "", error };
      await service.call("NotifyRegistrationStatus", status, answerLimitMs);
      return info;
    } finally {
      client.close();
    }
  }
}
