#!/usr/bin/env node
// Starts the program of the package for this system, which npm has installed beside this one.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `lutra-lm-${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "lutra.exe" : "lutra";
let path;
try {
  path = require.resolve(`${name}/bin/${program}`);
} catch {
  console.error(
    `lutra: the package ${name} is not installed. Either there is none for this system, or npm left out ` +
      "optional dependencies: install without --omit=optional.",
  );
  process.exit(1);
}

const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends SIGINT to both; what is sent to this process alone is passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`lutra: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
