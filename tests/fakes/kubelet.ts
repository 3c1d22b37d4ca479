import { Connection, ServiceClient } from "../../src/csi/server/client.ts";
import type { PluginInfo } from "../../src/csi/generated/pluginregistration.ts";
import { loadRegistration } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";

/** How long a plugin may take to answer. */
const answerLimitMs = 10_000;

/**
 * A kubelet as plugins see it: it asks every new socket in its folder for its plugin, once, and reports the result of
 * the registration to it. It ignores names that begin with a dot.
 */
export class FakeKubelet {
  readonly folder: string;
  /** Why no plugin can be registered now; undefined when it can. */
  refusal: string | undefined;
  readonly #known = new Map<string, string>();
  readonly #definition = loadRegistration();

  /** @param kubeletPath contains the folder plugins_registry, which is made when it is missing */
  constructor(kubeletPath: string) {
    this.folder = `${kubeletPath}/plugins_registry`;
    Deno.mkdirSync(this.folder, { recursive: true });
  }

  /** Reads the folder once; returns the plugins that it has registered. */
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

  /** The process ends and another one starts, which knows no plugin. */
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
    const connection = new Connection(`unix://${this.folder}/${name}`);
    try {
      const service = new ServiceClient(connection, this.#definition, systemClock);
      const info = await service.call("GetInfo", {}, answerLimitMs);
      const error = this.refusal ?? "";
      const status = { pluginRegistered: error === "", error };
      await service.call("NotifyRegistrationStatus", status, answerLimitMs);
      return info;
    } finally {
      connection.close();
    }
  }
}
