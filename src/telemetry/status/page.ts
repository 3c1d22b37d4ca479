import { counted } from "../../volume/model/counted.ts";
import { controllerSections } from "./controller_sections.ts";
import type { FailedCall, NodeStatus, StagedVolume, Status, StatusEvent, StatusQuery } from "./model.ts";
import { isUnwell } from "./node_status_store.ts";
import { ago, badge, type Html, markup, moment, pager, problemList, table } from "./html.ts";
import { style } from "./style.ts";

/** The status page as a whole document. */
export function statusPage(status: Status, query: StatusQuery): string {
  const { driver, controller, node, atMs } = status;
  const title = `${driver.driverName} on ${driver.nodeId ?? "a controller"}`;
  return String(markup`
    <!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>${title}: ${result(status).word}</title>
        <style>${styleSheet}</style>
      </head>
      <body>
    ${heading(status)}
    ${tiles(status)}
    ${controller && controllerSections(controller, query, atMs)}
    ${node && nodeSection(node, query, atMs)}
    ${statusEvents(status.events, atMs)}
    ${failedCalls(status)}
    ${footer(atMs)}
      </body>
    </html>
  `).trim() + "\n";
}

// It is written by this project, and allowed by its digest: see contentSecurityPolicy().
const styleSheet = markup([style] as unknown as TemplateStringsArray);

/** Allows a browser to use the page's own style and form, and nothing else. */
export async function contentSecurityPolicy(): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style));
  const hash = new Uint8Array(digest).toBase64();
  return `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
}

function result({ failure, unreadiness }: Status): { kind: "good" | "bad" | "warn"; word: string } {
  if (failure !== undefined) return { kind: "bad", word: "failed" };
  return unreadiness === undefined ? { kind: "good", word: "ready" } : { kind: "warn", word: "not ready" };
}

function heading(status: Status): Html {
  const { driver, atMs, startedAtMs, failure, unreadiness } = status;
  const { kind, word } = result(status);
  const reason = failure ?? unreadiness;
  return markup`<header>
<h1>${driver.driverName}</h1> ${badge(kind, word)}
<small>rds-csi ${driver.version}, ${driver.roles.join(" and ")}${
    driver.nodeId === undefined ? "" : ` on ${driver.nodeId}`
  }${leadWords(status)}, started ${ago(startedAtMs, atMs)}</small>
</header>
${reason && markup`<section>${badge(kind, word)} ${reason}</section>`}`;
}

function leadWords({ controller }: Status): string {
  if (controller?.leads === undefined) return "";
  return controller.leads ? ", which leads" : ", another controller leads";
}

function tiles({ controller, node, events: statusEvents, failedCalls }: Status): Html {
  const warnings = statusEvents.filter(({ warning }) => warning).length;
  const tile = (name: string, value: number, note: string) =>
    markup`
      <div>
        <dt>${name}</dt>
        <dd>${value.toLocaleString("en-US")}<small>${note}</small></dd>
      </div>\n
    `;
  return markup`<dl class="tiles">
${
    controller && [
      tile("Volumes", controller.volumes.total, `${controller.unwell} with a problem`),
      tile("Attachments", controller.attachments, counted(controller.migrations, "migration")),
    ]
  }${node && tile("Staged here", node.volumes.total, `${node.unwell} with a problem`)}${
    tile("Warnings", warnings, "of the events below")
  }${tile("Refused calls", failedCalls.length, "of the last ones below")}</dl>`;
}

function nodeSection(node: NodeStatus, query: StatusQuery, nowMs: number): Html {
  const { volumes, registration } = node;
  const registered = registration === undefined
    ? "not registered by itself"
    : markup`${registration.state} with the kubelet, ${ago(registration.atMs, nowMs)}`;
  return markup`<section>
<h2>Staged volumes <small>on ${node.nodeId}; ${registered}</small></h2>
${pager(volumes, query)}
${
    table<StagedVolume>(volumes.items, [
      { head: "Volume", form: "id", cell: ({ id }) => id },
      { head: "State", cell: (one) => stagedState(one) },
      {
        head: "Paths",
        cell: ({ paths }) =>
          paths.map(({ address, port, state }) =>
            markup`<div>${address === "" ? "local" : `${address}:${port}`} ${state}</div>`
          ),
      },
      { head: "Seen", form: "when", cell: ({ seenAtMs }) => ago(seenAtMs, nowMs, "not since the start") },
    ], "Nothing is staged here.")
  }
</section>`;
}

function stagedState(volume: StagedVolume): Html {
  if (volume.problems.length > 0) return problemList(volume.problems);
  if (volume.seenAtMs === undefined) return badge("plain", "staged");
  return isUnwell(volume) ? badge("bad", "no live path") : badge("good", "live");
}

function statusEvents(all: readonly StatusEvent[], nowMs: number): Html {
  return markup`<section>
<h2>Last events <small>latest first: fenced nodes, refusals, and whatever may need a person</small></h2>
${
    table<StatusEvent>(all, [
      { head: "When", form: "when", cell: ({ atMs }) => ago(atMs, nowMs) },
      { head: "What", cell: ({ warning, reason }) => badge(warning ? "warn" : "plain", reason) },
      { head: "Volume", form: "id", cell: ({ volumeId }) => volumeId ?? "–" },
      { head: "Details", form: "message", cell: ({ message }) => message },
    ], "Nothing since the start.")
  }
</section>`;
}

function failedCalls({ failedCalls, atMs }: Status): Html {
  return markup`<section>
<h2>Refused and failed calls <small>CSI calls, latest first</small></h2>
${
    table<FailedCall>(failedCalls, [
      { head: "When", form: "when", cell: (call) => ago(call.atMs, atMs) },
      { head: "Method", cell: ({ method }) => method },
      { head: "Code", cell: ({ code }) => badge("warn", code) },
      { head: "Volume", form: "id", cell: ({ volumeId }) => volumeId ?? "–" },
      {
        head: "Why",
        form: "message",
        cell: ({ message, requestId }) => markup`${message} <small>request ${requestId}</small>`,
      },
    ], "None.")
  }
</section>`;
}

function footer(atMs: number): Html {
  return markup`
    <footer>
      <p>What this process knew at ${
    moment(
      atMs,
    )
  }. Reading this page asks neither a router nor a disk, and nothing can be
    changed here. The same for programs: <a href="status.json">status.json</a>; numbers over time:
    <a href="metrics">metrics</a>.</p>
    </footer>
  `;
}

/** The status as one JSON document: times in ISO 8601 and named `…At`, unknown values as null, bytes as numbers. */
export function statusJson(status: Status): string {
  return `${JSON.stringify(written(status), null, 2)}\n`;
}

function written(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(written);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) =>
      key === "atMs" || key.endsWith("AtMs")
        ? [key.slice(0, -2), typeof field === "number" ? new Date(field).toISOString() : null]
        : [key, written(field)]
    ),
  );
}
