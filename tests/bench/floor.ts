/**
 * The least that a controller of these packages can cost a call: for each call of CreateVolume, DeleteVolume and
 * GetCapacity it sends one command of usual length over SSH and answers, without deciding anything. `versus.ts` runs it as
 * the other driver:
 *
 * --other "deno run -A tests/bench/floor.ts {address} {port} {key}"
 */
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import ssh2 from "ssh2";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { writeTogether } from "../../src/routeros/ssh/write_together.ts";

const [address = "", port = "", key = ""] = Deno.args;
/** As long as the one that makes an empty volume; the router prints its pools. */
const command = `:put [:serialize to=json value=[/disk print detail as-value where mounted or slot="${
  "x".repeat(850)
}"]]`;

const router = new ssh2.Client();
const socket = new Socket();
socket.connect(Number(port), "127.0.0.1");
writeTogether(socket, () => undefined);
router.on("connect", () => router.setNoDelay(true));
router.on("ready", serve);
router.connect({ username: "csi", privateKey: readFileSync(key), sock: socket });

type Answer = (error: null, response: unknown) => void;

function serve(): void {
  const { Controller, Identity } = loadCsi();
  const server = new Server({ "grpc.enable_channelz": 0 });
  const after =
    (respond: (request: { name: string }) => unknown) =>
    ({ request }: { request: unknown }, answer: Answer) =>
      router.exec(command, (error, channel) => {
        if (error) throw error;
        const printed: Uint8Array[] = [];
        channel.on("data", (bytes: Uint8Array) => printed.push(bytes));
        channel.on("close", () => answer(null, respond(request as { name: string })));
      });
  server.addService(Identity.service, {
    Probe: (_: unknown, answer: Answer) => answer(null, { ready: { value: true } }),
  });
  server.addService(Controller.service, {
    CreateVolume: after(({ name }) => ({ volume: { volumeId: name, capacityBytes: String(1 << 30) } })),
    DeleteVolume: after(() => ({})),
    GetCapacity: after(() => ({ availableCapacity: "0" })),
  });
  server.bindAsync(address.replace("unix://", "unix:"), ServerCredentials.createInsecure(), (error) => {
    if (error !== null) throw error;
  });
}
