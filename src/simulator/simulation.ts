import type { Console } from "./console/console.ts";
import type { Faults } from "./faults.ts";
import type { Menus } from "./menu/menu.ts";
import type { Router } from "./model/router.ts";
import type { Users } from "./ssh/users.ts";
import type { SshService } from "./ssh/server.ts";
import type { Journal, Violations } from "./assertions/journal.ts";
import type { OwnArea } from "./assertions/ownership.ts";

/** Everything that makes up one running simulator. */
export interface Simulation {
  readonly router: Router;
  readonly menus: Menus;
  readonly console: Console;
  readonly journal: Journal;
  readonly violations: Violations;
  readonly faults: Faults;
  readonly users: Users;
  readonly area: OwnArea;
  readonly ssh: SshService;
}
